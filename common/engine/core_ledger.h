#pragma once

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace penstock {

// What a worker computes on the cores that it shares with others.
enum class CoreUse { kPrompts, kAnswers };

// Workers that claim the cores now, other than who asks.
struct CoreClaims {
  int prompts = 0;
  int answers = 0;
};

// Where the workers of one host, each a process, tell each other what they
// compute. A claim is for a while only, so that nobody waits for one that died
// or hangs. Called on the engine thread; never blocks.
class CoreLedger {
 public:
  // No claim is for longer.
  static constexpr absl::Duration kLease = absl::Milliseconds(500);

  virtual ~CoreLedger() = default;
  // Instead of the claim before. It ends at `now + kLease` by itself.
  virtual void Claim(CoreUse use, Instant now) = 0;
  virtual void Release() = 0;
  virtual CoreClaims Others(Instant now) const = 0;
};

}  // namespace penstock
