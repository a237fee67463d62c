#include "common/env/clock.h"

#include "common/base/check.h"

namespace penstock {

Instant operator+(Instant at, absl::Duration d) {
  if (at == Instant::Infinite()) return at;
  int64_t delta = absl::ToInt64Nanoseconds(d);
  int64_t sum;
  if (__builtin_add_overflow(at.nanos_, delta, &sum)) {
    sum = delta > 0 ? INT64_MAX : INT64_MIN;
  }
  return Instant(sum);
}

absl::Duration operator-(Instant a, Instant b) {
  if (a == Instant::Infinite()) return absl::InfiniteDuration();
  return absl::Nanoseconds(a.nanos_) - absl::Nanoseconds(b.nanos_);
}

void ManualClock::AdvanceTo(Instant now) {
  CHECK(now >= now_) << "a monotonic clock cannot go back";
  now_ = now;
}

}  // namespace penstock
