#include "tools/simulator/trace/duration_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(DurationHistogramTest, NothingIsZero) {
  EXPECT_EQ(DurationHistogram().Percentile(50), absl::ZeroDuration());
  EXPECT_EQ(DurationHistogram().max(), absl::ZeroDuration());
}

TEST(DurationHistogramTest, SmallValuesAreExact) {
  DurationHistogram histogram;
  for (int i = 1; i <= 200; ++i) histogram.Add(absl::Nanoseconds(i));
  for (int p : {1, 50, 99, 100}) {
    EXPECT_EQ(histogram.Percentile(p), absl::Nanoseconds(2 * p));
  }
}

TEST(DurationHistogramTest, QuantilesAreWithinABucketOfTheSortedValues) {
  SeededRandom random(1);
  DurationHistogram histogram;
  std::vector<int64_t> values;
  for (int i = 0; i < 10000; ++i) {
    const int bits = static_cast<int>(random.Below(50));
    values.push_back(static_cast<int64_t>(random.Next() >> (63 - bits)));
    histogram.Add(absl::Nanoseconds(values.back()));
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.count(), 10000);
  EXPECT_EQ(histogram.max(), absl::Nanoseconds(values.back()));
  for (const int hundredths : {1, 1000, 5000, 9000, 9990, 10000}) {
    const auto exact = static_cast<double>(values[hundredths - 1]);
    const double got =
        absl::ToDoubleNanoseconds(histogram.Percentile(hundredths / 100.0));
    EXPECT_GE(got, exact) << hundredths;
    EXPECT_LE(got, exact * (1 + 1.0 / 128)) << hundredths;
  }
}

TEST(DurationHistogramTest, ACountStandsForSoManyValues) {
  DurationHistogram histogram;
  histogram.Add(absl::Seconds(1), 1);
  histogram.Add(absl::ZeroDuration(), 3);
  EXPECT_EQ(histogram.Percentile(75), absl::ZeroDuration());
  EXPECT_EQ(histogram.Percentile(76), absl::Seconds(1));
}

}  // namespace
}  // namespace penstock
