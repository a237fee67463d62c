#include <vector>

#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Known-answer vectors published with Random123 (kat_vectors, philox4x32-10).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                       {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

TEST(RandomTest, StreamsOfADrawAreApart) {
  const double token = SampleUniform(5, 6, 7);
  EXPECT_EQ(SampleUniform(5, 6, 7, SampleStream::kToken), token);
  EXPECT_NE(SampleUniform(5, 6, 7, SampleStream::kXtc), token);
  // The first 53 bits of Philox at counter (7, 0, 6, 0) under key (5, 0).
  const auto bits = Philox4x32({7, 0, 6, 0}, {5, 0});
  EXPECT_EQ(
      token,
      static_cast<double>((uint64_t{bits[1]} << 32 | bits[0]) >> 11) * 0x1p-53);
}

TEST(RandomTest, BelowStaysBelowAndCoversAll) {
  SeededRandom random(7);
  std::vector<int> seen(5);
  for (int i = 0; i < 500; ++i) {
    uint64_t v = random.Below(5);
    ASSERT_LT(v, 5u);
    ++seen[v];
  }
  for (int count : seen) EXPECT_GT(count, 50);
}

TEST(TimersTest, RunInDeadlineThenScheduleOrder) {
  Timers timers;
  std::vector<int> order;
  Instant t1 = Instant::FromNanos(10), t2 = Instant::FromNanos(20);
  timers.Schedule(t2, [&] { order.push_back(3); });
  timers.Schedule(t1, [&] {
    order.push_back(1);
    timers.Schedule(t1, [&] { order.push_back(2); });
  });
  TimerId cancelled = timers.Schedule(t2, [&] { order.push_back(99); });
  timers.Cancel(cancelled);
  EXPECT_EQ(timers.NextDeadline(), t1);
  EXPECT_EQ(timers.RunDue(t1), 2);
  EXPECT_EQ(timers.RunDue(t2), 1);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(timers.NextDeadline(), Instant::Infinite());
}

TEST(InstantTest, ArithmeticSaturates) {
  EXPECT_EQ(Instant::Infinite() + absl::Seconds(-5), Instant::Infinite());
  EXPECT_EQ(Instant::FromNanos(5) + absl::InfiniteDuration(),
            Instant::Infinite());
  EXPECT_EQ(Instant::FromNanos(7) - Instant::FromNanos(5),
            absl::Nanoseconds(2));
}

}  // namespace
}  // namespace penstock
