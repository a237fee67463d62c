#pragma once

#include <compare>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {

// A point on the local monotonic clock. Instants of different hosts never
// meet: only durations travel.
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant FromNanos(int64_t nanos) { return Instant(nanos); }
  static constexpr Instant Infinite() { return Instant(INT64_MAX); }

  constexpr int64_t nanos() const { return nanos_; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  // Infinite() plus anything stays infinite; other sums saturate.
  friend Instant operator+(Instant at, absl::Duration d);
  friend absl::Duration operator-(Instant a, Instant b);

 private:
  explicit constexpr Instant(int64_t nanos) : nanos_(nanos) {}
  int64_t nanos_ = 0;
};

// Monotonic time as a port: the real one lives in common/env/real, the virtual
// one in tests and the simulator. Thread rule: the implementation's own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

// Time that moves only when told. Single-threaded.
class ManualClock : public Clock {
 public:
  Instant Now() const override { return now_; }
  // `now` must not lie in the past.
  void AdvanceTo(Instant now);
  void Advance(absl::Duration by) { AdvanceTo(now_ + by); }

 private:
  Instant now_ = Instant::FromNanos(1);
};

}  // namespace penstock
