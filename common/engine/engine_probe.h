#pragma once

#include <cstdint>

#include "absl/status/status.h"
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
  // Answers, while another worker of the host computed a prompt.
  virtual void WaitedForCores(absl::Duration waited) {}
  // Before an answer wrote into a block that others hold.
  virtual void BlocksCopied(int count) {}
  // Of an admitted prompt's blocks beyond the pool: how many a tier holds, and
  // how many of them are fetched.
  virtual void TierLooked(int wanted, int held, int fetched) {}
  virtual void PageFetched(uint64_t bytes) {}
  // Computed instead: DATA_LOSS for a bad page, DEADLINE_EXCEEDED for one that
  // came too late, else as in KvTier.
  virtual void PageNotFetched(absl::StatusCode why) {}
  virtual void PageStored(uint64_t bytes) {}
  virtual void PageNotStored(absl::StatusCode why) {}
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
