#include "common/worker/host/calibration.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/env/clock.h"
#include "common/model/kv_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Steps of `fixed` and 1 ms for each row, in the time of a manual clock.
class FakeBackend : public Backend {
 public:
  FakeBackend(ManualClock* clock, StepDriver* driver)
      : clock_(clock), driver_(driver) {
    caps_.max_rows = 512;
    caps_.max_sequences = 8;
  }
  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override {
    clock_->Advance(fixed + absl::Milliseconds(1) *
                                static_cast<int>(plan.tokens.size()));
    plans.push_back(std::move(plan));
    StepResult result;
    result.status = status;
    results_.push_back(std::move(result));
    driver_->Ring();
  }
  std::optional<BackendEvent> Poll() override {
    if (results_.empty()) return std::nullopt;
    StepResult result = std::move(results_.front());
    results_.pop_front();
    return result;
  }
  BackendCaps caps_;
  absl::Duration fixed = absl::Milliseconds(2);
  absl::Status status;
  std::vector<StepPlan> plans;

 private:
  KvLayout layout_;
  std::deque<StepResult> results_;
  ManualClock* clock_;
  StepDriver* driver_;
};

class CalibrationTest : public testing::Test {
 protected:
  auto Run(int blocks = 1000) {
    return Calibrate(backend_, driver_, clock_, blocks);
  }

  ManualClock clock_;
  StepDriver driver_;
  FakeBackend backend_{&clock_, &driver_};
};

TEST_F(CalibrationTest, TimesStepsOfEachKind) {
  auto measured = Run();
  ASSERT_TRUE(measured.ok()) << measured.status();
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const MeasuredStep& step : *measured) {
    EXPECT_EQ(step.took, absl::Milliseconds(2 + step.size.rows));
    sizes.emplace_back(step.size.rows, step.size.pairs);
  }
  // One answer, four, a prompt's 32 tokens, and 16 behind 512 others.
  EXPECT_THAT(sizes,
              testing::ElementsAre(std::pair(1, 0), std::pair(4, 0),
                                   std::pair(32, 32 * 31 / 2),
                                   std::pair(16, 16 * 512 + 16 * 15 / 2)));
}

TEST_F(CalibrationTest, PlansAreValid) {
  ASSERT_TRUE(Run().ok());
  ASSERT_EQ(backend_.plans.size(), 5u);
  for (const StepPlan& plan : backend_.plans) {
    EXPECT_EQ(plan.tokens.size(), plan.positions.size());
    std::vector<BlockIndex> blocks = plan.block_table;
    std::sort(blocks.begin(), blocks.end());
    EXPECT_TRUE(std::adjacent_find(blocks.begin(), blocks.end()) ==
                blocks.end());
    for (const SequenceRows& rows : plan.sequences) {
      EXPECT_EQ(rows.blocks,
                BlocksFor(plan.positions[rows.first_row + rows.rows - 1] + 1));
    }
  }
}

TEST_F(CalibrationTest, WhatDoesNotFitIsLeftOut) {
  // 32 rows need two blocks, four answers four, 528 positions 33.
  EXPECT_EQ(Run(32)->size(), 3u);
  EXPECT_EQ(Run(3)->size(), 2u);
  backend_.caps_.max_rows = 8;
  backend_.caps_.max_sequences = 2;
  EXPECT_EQ(Run()->size(), 1u);
}

TEST_F(CalibrationTest, ASlowBackendIsNotKeptFromServing) {
  backend_.fixed = absl::Milliseconds(30);
  const Instant began = clock_.Now();
  EXPECT_EQ(Run()->size(), 1u);
  EXPECT_EQ(clock_.Now() - began, absl::Milliseconds(2 * 31));
}

TEST_F(CalibrationTest, SaysWhyAStepFailed) {
  backend_.status = absl::InternalError("a core melted");
  EXPECT_EQ(Run().status().message(), "a core melted");
}

}  // namespace
}  // namespace penstock
