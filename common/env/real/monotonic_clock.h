#pragma once

#include "common/env/clock.h"

namespace penstock {

// CLOCK_MONOTONIC. Thread-safe.
class MonotonicClock : public Clock {
 public:
  Instant Now() const override;
};

}  // namespace penstock
