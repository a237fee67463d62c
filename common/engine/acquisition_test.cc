#include "common/engine/acquisition.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

// 1 ms for each token: 16 ms for each block; nothing else.
CostModel Plain() {
  CostCoefficients c;
  c.prefill_fixed = absl::ZeroDuration();
  c.prefill_token = absl::Milliseconds(1);
  c.prefill_pair = absl::ZeroDuration();
  return *CostModel::Create(c);
}

Acquisition Plan(int have, int below, absl::Duration wait,
                 absl::Duration each) {
  return PlanAcquisition({have, {below, wait, each}}, Plain());
}

TEST(AcquisitionTest, FetchesAllWhenThatIsQuick) {
  const Acquisition plan =
      Plan(3, 100, absl::Milliseconds(5), absl::Microseconds(500));
  EXPECT_EQ(plan.compute_until, 3);
  EXPECT_EQ(plan.fetch_until, 103);
  EXPECT_EQ(plan.took, absl::Milliseconds(55));
}

TEST(AcquisitionTest, NothingIsFetchedThatIsNotHeld) {
  EXPECT_FALSE(
      Plan(3, 0, absl::ZeroDuration(), absl::ZeroDuration()).fetches());
}

TEST(AcquisitionTest, ComputesWhatComesTooLate) {
  EXPECT_FALSE(
      Plan(0, 10, absl::Milliseconds(160), absl::Milliseconds(1)).fetches());
  // What gains next to nothing is not worth it either.
  EXPECT_FALSE(
      Plan(0, 1, absl::Microseconds(15500), absl::ZeroDuration()).fetches());
  EXPECT_TRUE(
      Plan(0, 1, absl::Microseconds(14500), absl::ZeroDuration()).fetches());
}

TEST(AcquisitionTest, ComputesTheFrontWhileASlowTierBringsTheRear) {
  // As quick as computing: each does one half.
  const Acquisition even =
      Plan(10, 20, absl::ZeroDuration(), absl::Milliseconds(16));
  EXPECT_EQ(even.compute_until, 20);
  EXPECT_EQ(even.fetch_until, 30);
  EXPECT_EQ(even.took, absl::Milliseconds(160));
  // Three times as slow: it brings a quarter of them.
  const Acquisition slow =
      Plan(0, 40, absl::ZeroDuration(), absl::Milliseconds(48));
  EXPECT_EQ(slow.compute_until, 30);
  // Four times as quick: not worth computing beside it.
  EXPECT_EQ(
      Plan(0, 40, absl::ZeroDuration(), absl::Milliseconds(4)).compute_until,
      0);
}

TEST(AcquisitionTest, GoesByHowFastThisMachineIs) {
  const TierLookup below{20, absl::ZeroDuration(), absl::Milliseconds(16)};
  // Ten times as fast as the model says: nine tenths are computed.
  EXPECT_GE(PlanAcquisition({0, below, 0.1}, Plain()).compute_until, 18);
  EXPECT_EQ(PlanAcquisition({0, below, 10}, Plain()).compute_until, 0);
}

TEST(AcquisitionTest, NoSplitBeatsTheOneChosen) {
  for (int each = 1; each < 60; each += 3) {
    const Acquisition plan =
        Plan(4, 30, absl::Milliseconds(7), absl::Milliseconds(each));
    for (int m = 4; m < 34; ++m) {
      const absl::Duration took =
          std::max(absl::Milliseconds(16 * (m - 4)),
                   absl::Milliseconds(7 + each * (34 - m)));
      // Within what a split has to gain.
      EXPECT_GE(took / 0.75, plan.took) << each << " " << m;
    }
  }
}

}  // namespace
}  // namespace penstock
