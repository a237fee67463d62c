#include "kernels/host/thread_budget.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// Steps of 2 ms for `ms`, of which the threads lose `lost` of 100 while there
// are more than `fit` of them.
void Pass(ThreadBudget& budget, int ms, int fit, int lost) {
  for (int at = 0; at < ms; at += 2) {
    const int64_t step = 2 * kMillisecond;
    budget.Region(step, budget.threads() > fit ? step * lost / 100 : 0);
  }
}

TEST(ThreadBudgetTest, KeepsAllThreadsOnAnIdleMachine) {
  ThreadBudget budget(8);
  Pass(budget, 10'000, 8, 0);
  EXPECT_EQ(budget.threads(), 8);
}

// Losing a tenth is less than the eighth that a thread brings.
TEST(ThreadBudgetTest, KeepsAThreadThatBringsMoreThanIsLost) {
  ThreadBudget budget(8);
  Pass(budget, 10'000, 0, 10);
  EXPECT_EQ(budget.threads(), 8);
}

TEST(ThreadBudgetTest, LeavesANeighbourItsCore) {
  ThreadBudget budget(8);
  Pass(budget, 100, 7, 50);
  EXPECT_EQ(budget.threads(), 7);
  ThreadBudget two(2);
  Pass(two, 100, 1, 60);
  EXPECT_EQ(two.threads(), 1);
}

TEST(ThreadBudgetTest, NeverGoesBelowOne) {
  ThreadBudget budget(3);
  Pass(budget, 150, 0, 100);
  EXPECT_EQ(budget.threads(), 1);
}

// What comes back is taken again soon, while tries that fail grow rare.
TEST(ThreadBudgetTest, TriesAgain) {
  ThreadBudget budget(2);
  Pass(budget, 100, 1, 90);
  ASSERT_EQ(budget.threads(), 1);
  int more = 0;
  constexpr int kSeconds = 60;
  for (int at = 0; at < kSeconds * 1000; at += 2) {
    more += budget.threads() > 1;
    Pass(budget, 2, 1, 90);
  }
  EXPECT_GT(more, 0);
  EXPECT_LT(more * 2, kSeconds * 1000 / 50);
  Pass(budget, 4'000, 2, 0);
  EXPECT_EQ(budget.threads(), 2);
}

// A step that was delayed for longer than it took, by several threads at once,
// counts once.
TEST(ThreadBudgetTest, CountsNoMomentTwice) {
  ThreadBudget budget(4);
  for (int i = 0; i < 100; ++i) {
    budget.Region(kMillisecond, i % 5 == 0 ? 100 * kMillisecond : 0);
  }
  EXPECT_EQ(budget.threads(), 4);
}

}  // namespace
}  // namespace penstock
