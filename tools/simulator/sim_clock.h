#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace penstock {

// The monotonic clock of one simulated host: begins where it likes, runs faster
// or slower than the world, jumps ahead, and never goes back. Integers only, so
// that it says the same on every machine. Single-threaded.
class SimClock : public Clock {
 public:
  // Now at the world's `world` is `begin`.
  SimClock(const Clock* world, Instant begin);

  Instant Now() const override;

  // Ahead by so much; behind (negative) means that it stands still until it
  // would have come to where it is.
  void Jump(absl::Duration by);
  // Local seconds in a second of the world; at least 1/1000, at most 1000.
  void SetRate(double rate);

  // When in the world's time Now() will have reached `local`; not before now.
  Instant WorldTimeOf(Instant local) const;

 private:
  int64_t Unclamped() const;

  const Clock* world_;
  Instant world_base_;
  int64_t local_base_;  // at world_base_, in nanoseconds
  int64_t floor_;       // never below
  int64_t rate_;        // in 2^-32
};

}  // namespace penstock
