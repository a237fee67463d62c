#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/engine/engine_probe.h"
#include "common/engine/sequence.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/leg.h"

namespace penstock {

// What the last frame of a leg's last answer says of the whole request.
struct LegFacts {
  Usage usage;
  TransferSummary transfer;
};

// The output side of one leg: turns deliveries into frames with usage and
// timings, and ends the leg exactly once. Owned by whatever serves the leg.
// Single-threaded.
class LegOutput {
 public:
  // Starts the leg's clock now.
  LegOutput(const LegRequest& leg, LegKind kind, LegSink* sink,
            const Clock* clock, HandoffProbe* probe);

  void Accept();
  void MarkScheduled();
  // A token was made, delivered or not; `index` counts within its answer.
  void MarkToken(int index);
  void DeliverPrompt(PromptLogprobs part);
  // `facts` with the last token of the last answer, else null.
  void Deliver(const TokenDelivery& delivery, const LegFacts* facts);
  // The same for tokens that were kept.
  void Deliver(TokenFrame frame, const LegFacts* facts);
  // Later calls are no-ops.
  void Finish(const absl::Status& status);

  bool finished() const { return sink_ == nullptr; }
  // What was measured so far; a handoff sends it on.
  RequestTimings& timings() { return timings_; }
  Instant received_at() const { return received_at_; }

 private:
  AttemptId attempt_;
  LegKind kind_;
  LegSink* sink_;  // null when finished
  const Clock* clock_;
  HandoffProbe* probe_;
  Instant received_at_;
  Instant scheduled_at_;
  Instant first_token_at_;
  bool accepted_ = false;
  bool has_first_token_ = false;
  RequestTimings timings_;
};

}  // namespace penstock
