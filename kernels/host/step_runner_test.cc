#include "kernels/host/step_runner.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Counts wakes; the test's thread waits for the next one.
class Bell {
 public:
  void Ring() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++rings_;
    rung_.notify_one();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    rung_.wait(lock, [this] { return rings_ > 0; });
    --rings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  int rings_ = 0;
};

StepPlan Plan(uint64_t step, int rows) {
  StepPlan plan;
  plan.step = step;
  plan.tokens.assign(rows, 7);
  return plan;
}

// Every event up to and including the StepResult.
std::vector<BackendEvent> Drain(StepRunner& runner, Bell& bell) {
  std::vector<BackendEvent> events;
  for (;;) {
    bell.Wait();
    while (std::optional<BackendEvent> event = runner.Poll()) {
      events.push_back(*std::move(event));
      if (std::holds_alternative<StepResult>(events.back())) return events;
    }
  }
}

TEST(StepRunnerTest, EventsComeInOrderForEachOfManySteps) {
  Bell bell;
  StepRunner runner(
      {.run =
           [](const StepPlan& plan, const StepRunner::Progress& progress) {
             progress(1);
             progress(3);
             StepResult result;
             result.sampled.resize(plan.tokens.size());
             return result;
           },
       .wake = [&bell] { bell.Ring(); }});
  for (uint64_t step = 1; step <= 200; ++step) {
    runner.Submit(Plan(step, static_cast<int>(step % 3)));
    std::vector<BackendEvent> events = Drain(runner, bell);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(std::get<StepProgress>(events[0]).layers_done, 1);
    EXPECT_EQ(std::get<StepProgress>(events[1]).layers_done, 3);
    EXPECT_EQ(std::get<StepProgress>(events[1]).step, step);
    const StepResult& result = std::get<StepResult>(events[2]);
    EXPECT_EQ(result.step, step);
    EXPECT_EQ(result.sampled.size(), step % 3);
    EXPECT_EQ(result.plan.step, step);
    EXPECT_EQ(result.plan.tokens.size(), step % 3);
  }
  EXPECT_FALSE(runner.Poll().has_value());
}

TEST(StepRunnerTest, AFailedStepDoesNotStopTheNext) {
  Bell bell;
  StepRunner runner({.run =
                         [](const StepPlan& plan, const StepRunner::Progress&) {
                           StepResult result;
                           if (plan.step == 1)
                             result.status = absl::InternalError("row 0");
                           return result;
                         },
                     .wake = [&bell] { bell.Ring(); }});
  runner.Submit(Plan(1, 1));
  EXPECT_EQ(std::get<StepResult>(Drain(runner, bell).back()).status.code(),
            absl::StatusCode::kInternal);
  runner.Submit(Plan(2, 1));
  EXPECT_TRUE(std::get<StepResult>(Drain(runner, bell).back()).status.ok());
}

TEST(StepRunnerTest, DestructionWaitsForTheRunningStep) {
  Bell started, finish;
  bool finished = false;  // written by the runner's thread, read after its join
  std::thread releaser;
  {
    StepRunner runner({.run =
                           [&](const StepPlan&, const StepRunner::Progress&) {
                             started.Ring();
                             finish.Wait();
                             finished = true;
                             return StepResult();
                           },
                       .wake = nullptr});
    runner.Submit(Plan(1, 1));
    started.Wait();
    releaser = std::thread([&finish] { finish.Ring(); });
  }
  releaser.join();
  EXPECT_TRUE(finished);
}

TEST(StepRunnerDeathTest, RefusesASecondStepInFlight) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        StepRunner runner(
            {.run = [](const StepPlan&,
                       const StepRunner::Progress&) { return StepResult(); },
             .wake = nullptr});
        runner.Submit(Plan(1, 1));
        runner.Submit(Plan(2, 1));
      },
      "step 1 is still in flight");
}

}  // namespace
}  // namespace penstock
