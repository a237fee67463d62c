#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock {

// What the engine tells telemetry, as verbs; no metrics library is named here.
// Called on the engine thread. The base class ignores everything.
class EngineProbe {
 public:
  virtual ~EngineProbe() = default;
  virtual void StepFinished(int prefill_rows, int decode_rows,
                            absl::Duration took) {}
  virtual void SequenceQueued(absl::Duration waited) {}  // when first scheduled
  virtual void PrefixLooked(int prompt_tokens, int cached_tokens) {}
  virtual void TokenMade() {}
  virtual void Preempted() {}
  // Before an answer wrote into a block that others hold.
  virtual void BlocksCopied(int count) {}
};

// What the handoff tells telemetry.
class HandoffProbe {
 public:
  enum class Direction { kOut, kIn };
  virtual ~HandoffProbe() = default;
  // A transfer ended; `reason` is "ok" or a stable error name.
  virtual void TransferEnded(Direction direction, absl::string_view transport,
                             absl::string_view reason, uint64_t bytes,
                             absl::Duration took) {}
  virtual void ChunkNacked(absl::string_view reason) {}
  virtual void PageRefused(absl::string_view reason) {}
  virtual void LegStarted(bool prefill) {}
  virtual void LegEnded(bool prefill, absl::string_view reason) {}
};

}  // namespace penstock
