#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace penstock {

// How fast work leaves a queue, of late: what is long ago counts less and less.
class DrainRate {
 public:
  void Add(int64_t work, Instant now);
  // Work a second; nullopt before there is enough to tell.
  std::optional<double> At(Instant now) const;

 private:
  // Of what was added, this much is left after each second.
  double Decayed(Instant now) const;

  double work_ = 0;  // at last_, decayed
  Instant first_, last_;
  bool any_ = false;
};

}  // namespace penstock
