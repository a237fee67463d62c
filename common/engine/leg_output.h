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

// The output side of one leg: turns deliveries into frames with usage and
// timings, and ends the leg exactly once. Owned by whatever serves the leg.
// Single-threaded.
class LegOutput {
 public:
  // Starts the leg's clock now.
  LegOutput(const LegRequest& leg, LegKind kind, LegSink* sink, const Clock* clock,
            HandoffProbe* probe);

  void Accept();
  void MarkScheduled();
  // `transfer` and `sequence` fill the last frame's facts.
  void Deliver(const TokenDelivery& delivery, const Sequence& sequence,
               const TransferSummary& transfer);
  // Later calls are no-ops.
  void Finish(const absl::Status& status);

  bool finished() const { return sink_ == nullptr; }
  // What was measured so far; a handoff sends it on.
  RequestTimings& timings() { return timings_; }
  // Prompt tokens that prefill found cached, when this leg did not prefill.
  void set_cached_tokens(int tokens) { cached_tokens_ = tokens; }
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
  int cached_tokens_ = -1;
  RequestTimings timings_;
};

}  // namespace penstock
