#include "router/bench/thread_cpu_clock.h"

#include <time.h>

namespace penstock {

Instant ThreadCpuClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Instant::FromNanos(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace penstock
