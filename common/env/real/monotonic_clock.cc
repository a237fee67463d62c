#include "common/env/real/monotonic_clock.h"

#include <ctime>

namespace penstock {

Instant MonotonicClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Instant::FromNanos(now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec);
}

}  // namespace penstock
