#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace penstock {

// A distribution of durations in bounded memory: buckets that are at most 1/128
// of their lower bound wide, so quantiles are right to 0.8%. A value type.
class DurationHistogram {
 public:
  // Precondition: not negative.
  void Add(absl::Duration value, int64_t times = 1);

  // The nearest-rank percentile: an upper bound of the smallest value that at
  // least `percent` of the values do not exceed, never above max(); 0 without
  // values. Precondition: 0 < percent <= 100.
  absl::Duration Percentile(double percent) const;

  absl::Duration max() const { return max_; }
  int64_t count() const { return count_; }

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  absl::Duration max_;
};

}  // namespace penstock
