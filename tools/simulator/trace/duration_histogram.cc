#include "tools/simulator/trace/duration_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"

namespace penstock {
namespace {

// Nanoseconds below 2^8 have a bucket each; above, each power of two has 2^7.
constexpr int kBits = 7;

size_t BucketOf(uint64_t nanos) {
  const int width = static_cast<int>(std::bit_width(nanos));
  const int shift = std::max(0, width - kBits - 1);
  return (static_cast<size_t>(shift) << kBits) + (nanos >> shift);
}

// The largest value in a bucket.
uint64_t UpperBound(size_t bucket) {
  const size_t shift = bucket >> kBits == 0 ? 0 : (bucket >> kBits) - 1;
  const uint64_t lowest = (bucket - (shift << kBits)) << shift;
  return lowest + (uint64_t{1} << shift) - 1;
}

}  // namespace

void DurationHistogram::Add(absl::Duration value, int64_t times) {
  CHECK(value >= absl::ZeroDuration() && times >= 0);
  const size_t bucket =
      BucketOf(static_cast<uint64_t>(absl::ToInt64Nanoseconds(value)));
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += times;
  count_ += times;
  max_ = std::max(max_, value);
}

absl::Duration DurationHistogram::Percentile(double percent) const {
  CHECK(percent > 0 && percent <= 100);
  const auto rank = static_cast<int64_t>(
      std::ceil(percent * static_cast<double>(count_) / 100));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank && seen > 0) {
      return std::min(max_, absl::Nanoseconds(UpperBound(bucket)));
    }
  }
  return absl::ZeroDuration();
}

}  // namespace penstock
