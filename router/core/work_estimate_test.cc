#include "router/core/work_estimate.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(WorkEstimateTest, AServiceIsItsPromptAndAStepForEachFurtherToken) {
  CostCoefficients c;
  c.prefill_fixed = absl::Milliseconds(3);
  c.prefill_token = absl::Milliseconds(1);
  c.prefill_pair = absl::ZeroDuration();
  c.step_fixed = absl::Milliseconds(10);
  c.step_sequence = absl::Milliseconds(2);
  c.step_context_token = absl::Microseconds(10);
  const WorkEstimate estimate(*CostModel::Create(c), 128);
  EXPECT_EQ(estimate.Service(100, 0, 1), absl::Milliseconds(103));
  EXPECT_EQ(estimate.Service(100, 64, 1), absl::Milliseconds(39));
  EXPECT_EQ(estimate.Service(100, 0, 0), absl::Milliseconds(103));
  // 20 steps, whose contexts are 110 tokens on average.
  EXPECT_EQ(estimate.Service(100, 64, 21),
            absl::Milliseconds(39) + 20 * absl::Microseconds(12000 + 1100));
}

}  // namespace
}  // namespace penstock
