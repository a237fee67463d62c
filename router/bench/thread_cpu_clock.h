#pragma once

#include "common/env/clock.h"

namespace penstock {

// What the calling thread has computed, as a clock: what others do on the
// machine meanwhile is not in it, but for the caches that they share.
class ThreadCpuClock : public Clock {
 public:
  Instant Now() const override;
};

}  // namespace penstock
