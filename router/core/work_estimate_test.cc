#include "router/core/work_estimate.h"

#include <cmath>

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

// What the assumed machine would measure: prompts of 512 tokens take 0.3724
// s, and each step of an answer 2 ms.
CostCoefficients Assumed() {
  CostCoefficients c;
  c.prefill_fixed = absl::Milliseconds(14);
  c.prefill_token = absl::Microseconds(700);
  c.prefill_pair = absl::ZeroDuration();
  c.step_sequence = absl::Milliseconds(2);
  c.step_context_token = absl::ZeroDuration();
  return c;
}
TEST(WorkEstimateTest, PaceIsWhatAWorkerMeasuredOverWhatWasAssumed) {
  const WorkEstimate estimate(*CostModel::Create(Assumed()), 128);
  const WorkerPace pace =
      estimate.PaceOf({.step = 0.104, .row = 1.4e-3, .sample = 2.6e-3}, {});
  // (0.104 + 512 * 0.0014 + 0.0026) / 0.3724 = 2.2, and twice 2 ms.
  EXPECT_DOUBLE_EQ(pace.prefill, std::exp2(1.25));
  EXPECT_DOUBLE_EQ(pace.decode, 2);
  const WorkerPace fast = estimate.PaceOf({.row = 0.1e-3}, {});
  EXPECT_DOUBLE_EQ(fast.prefill, std::exp2(-2.75));
  EXPECT_DOUBLE_EQ(fast.decode, std::exp2(-4.25));
}

TEST(WorkEstimateTest, PaceMovesNotForSmallDifferences) {
  const WorkEstimate estimate(*CostModel::Create(Assumed()), 128);
  auto row = [](double share) {
    return StepCosts{.row = share * 0.3724 / 512};
  };
  EXPECT_EQ(estimate.PaceOf(row(1.2), {}).prefill, 1);
  EXPECT_EQ(estimate.PaceOf(row(0.85), {}).prefill, 1);
  EXPECT_EQ(estimate.PaceOf(row(2.2), {2, 1}).prefill, 2);
  EXPECT_EQ(estimate.PaceOf(row(1.7), {2, 1}).prefill, 2);
  EXPECT_DOUBLE_EQ(estimate.PaceOf(row(1.5), {2, 1}).prefill, std::exp2(0.5));
  // Nothing measured, and what cannot be.
  EXPECT_EQ(estimate.PaceOf({}, {2, 3}), (WorkerPace{2, 3}));
  EXPECT_EQ(estimate.PaceOf({.row = 3600}, {}), (WorkerPace{4096, 4096}));
  EXPECT_EQ(estimate.PaceOf({.row = 1e-300}, {}),
            (WorkerPace{1.0 / 4096, 1.0 / 4096}));
}

TEST(WorkEstimateTest, WorkAheadIsAtTheWorkersPace) {
  const WorkEstimate estimate(*CostModel::Create(Assumed()), 128);
  WorkerInfo worker;
  worker.roles = {.prefill = true, .decode = true};
  WorkerLoad load;
  load.active_requests = 3;
  load.queued_requests = 1;
  load.queued_tokens = 100;
  const absl::Duration prompt = absl::Milliseconds(84);
  const absl::Duration answers = 4 * 64 * absl::Milliseconds(2);
  EXPECT_EQ(estimate.Ahead(worker, load), prompt + answers);
  EXPECT_EQ(estimate.Ahead(worker, load, {2, 0.5}), 2 * prompt + answers / 2);
}

}  // namespace
}  // namespace penstock
