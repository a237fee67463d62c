#include "common/cost/cost_model.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

CostCoefficients Simple() {
  CostCoefficients c;
  c.prefill_fixed = absl::Seconds(1000);
  c.prefill_token = absl::Seconds(10);
  c.prefill_pair = absl::Seconds(1);
  c.step_fixed = absl::Seconds(100);
  c.step_sequence = absl::Seconds(10);
  c.step_context_token = absl::Seconds(1);
  c.transfer_fixed = absl::Seconds(7);
  c.transfer_mebibyte = absl::Seconds(16);
  return c;
}

// Every expected value is the sum written out by hand.
TEST(CostModelTest, FollowsItsLines) {
  CostModel cost = *CostModel::Create(Simple());
  // 3 tokens behind 5: they look back at 5, 6 and 7 tokens.
  EXPECT_EQ(cost.Prefill(3, 5), absl::Seconds(1000 + 3 * 10 + 5 + 6 + 7));
  EXPECT_EQ(cost.Prefill(1, 0), absl::Seconds(1010));
  EXPECT_EQ(cost.DecodeStep(2, 30), absl::Seconds(100 + 20 + 30));
  // Contexts of 4 + 1, 4 + 2 and 4 + 3 tokens.
  EXPECT_EQ(cost.DecodeShare(3, 4), absl::Seconds(30 + 5 + 6 + 7));
  EXPECT_EQ(cost.Transfer((2 << 20) + (1 << 18)), absl::Seconds(7 + 32 + 4));
}

TEST(CostModelTest, NothingCostsNothing) {
  CostModel cost = *CostModel::Create(Simple());
  EXPECT_EQ(cost.Prefill(0, 100), absl::ZeroDuration());
  EXPECT_EQ(cost.DecodeStep(0, 0), absl::ZeroDuration());
  EXPECT_EQ(cost.DecodeShare(0, 100), absl::ZeroDuration());
  EXPECT_EQ(cost.Transfer(0), absl::ZeroDuration());
}

TEST(CostModelTest, LargeCountsDoNotOverflow) {
  CostModel cost = *CostModel::Create(CostCoefficients());
  EXPECT_GT(cost.Prefill(1 << 20, 1 << 30), cost.Prefill(1 << 20, 1 << 29));
  EXPECT_GT(cost.Transfer(uint64_t{1} << 60), cost.Transfer(uint64_t{1} << 59));
}

TEST(CostModelTest, NamesABadCoefficient) {
  CostCoefficients c;
  c.step_sequence = absl::Seconds(-1);
  auto cost = CostModel::Create(c);
  EXPECT_EQ(cost.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cost.status().message()), HasSubstr("step_sequence"));
  c = CostCoefficients();
  c.transfer_fixed = absl::InfiniteDuration();
  EXPECT_FALSE(CostModel::Create(c).ok());
}

}  // namespace
}  // namespace penstock
