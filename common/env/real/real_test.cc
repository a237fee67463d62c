#include <set>

#include "common/env/real/entropy.h"
#include "common/env/real/monotonic_clock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(MonotonicClockTest, NeverGoesBack) {
  MonotonicClock clock;
  Instant last = clock.Now();
  EXPECT_GT(last.nanos(), 0);
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(EntropyTest, DoesNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = DrawEntropy();
    ASSERT_NE(value, 0u);
    ASSERT_TRUE(seen.insert(value).second);
  }
  EXPECT_NE(EntropyRandom().Next(), EntropyRandom().Next());
}

}  // namespace
}  // namespace penstock
