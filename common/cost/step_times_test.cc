#include "common/cost/step_times.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

StepSize Chunk(int rows, int behind, int samples = 0) {
  StepSize work;
  work.Add(rows, behind, samples);
  return work;
}

StepSize Decodes(int sequences, int context) {
  StepSize work;
  for (int i = 0; i < sequences; ++i) work.Add(1, context, 1);
  return work;
}

// A machine whose steps take what the line says, in milliseconds.
struct Machine {
  double fixed, row, pair, sample;
  absl::Duration Time(const StepSize& work) const {
    return absl::Milliseconds(1) *
           (fixed + row * static_cast<double>(work.rows) +
            pair * static_cast<double>(work.pairs) +
            sample * static_cast<double>(work.samples));
  }
};

void ExpectNear(const StepTimes& times, const Machine& machine,
                const StepSize& work, double share) {
  const double truth = absl::ToDoubleSeconds(machine.Time(work));
  EXPECT_NEAR(absl::ToDoubleSeconds(times.Predict(work)), truth, share * truth)
      << work.rows << " rows, " << work.pairs << " pairs";
}

TEST(StepSizeTest, CountsPairsOfRowsAndWhatIsBeforeThem) {
  StepSize work = Chunk(3, 10);
  EXPECT_EQ(work.pairs, 10 + 11 + 12);
  work.Add(1, 7, 1);
  EXPECT_EQ(work.rows, 4);
  EXPECT_EQ(work.pairs, 40);
  EXPECT_EQ(work.samples, 1);
  work.Remove(3, 10, 0);
  EXPECT_EQ(work.pairs, 7);
}

TEST(StepTimesTest, BeginsWithTheGuess) {
  CostCoefficients guess;
  guess.step_fixed = absl::Milliseconds(3);
  guess.prefill_token = absl::Milliseconds(2);
  guess.prefill_pair = absl::Microseconds(10);
  guess.step_sequence = absl::Milliseconds(5);
  EXPECT_EQ(StepTimes(guess).Predict(Chunk(4, 100, 1)),
            absl::Microseconds(3000 + 4 * 2000 + 406 * 10 + 5000));
}

// Machines a hundred times faster and slower than the guess; one prompt and a
// few steps of its answer tell how long other steps take.
TEST(StepTimesTest, OnePromptAndAFewStepsAreEnough) {
  for (double scale : {0.01, 1.0, 100.0}) {
    const Machine machine{3 * scale, 0.3 * scale, 2e-5 * scale, 0.4 * scale};
    StepTimes times({});
    auto observe = [&](const StepSize& work) {
      times.Observe(work, machine.Time(work));
    };
    for (int at = 0; at < 1024; at += 256) observe(Chunk(256, at));
    observe(Chunk(100, 1024, 1));
    for (int i = 0; i < 4; ++i) observe(Decodes(1, 1124 + i));
    ExpectNear(times, machine, Chunk(256, 512), 0.05);
    ExpectNear(times, machine, Chunk(64, 0), 0.1);
    ExpectNear(times, machine, Decodes(1, 1000), 0.1);
    StepSize mixed = Decodes(4, 300);
    mixed.Add(100, 1500, 0);
    ExpectNear(times, machine, mixed, 0.2);
  }
}

// A thousand steps of one kind say nothing of another: that is kept.
TEST(StepTimesTest, WhatIsNotSeenIsNotForgotten) {
  const Machine machine{3, 0.3, 2e-5, 0.4};
  StepTimes times({});
  for (int at = 0; at < 2048; at += 256) {
    times.Observe(Chunk(256, at), machine.Time(Chunk(256, at)));
  }
  for (int i = 0; i < 1000; ++i) {
    times.Observe(Decodes(4, 500 + i), machine.Time(Decodes(4, 500 + i)));
  }
  ExpectNear(times, machine, Chunk(256, 1000), 0.1);
}

TEST(StepTimesTest, FollowsAMachineThatSlowsDown) {
  const Machine fast{3, 0.3, 2e-5, 0.4}, slow{9, 0.9, 6e-5, 1.2};
  StepTimes times({});
  auto steps = [&](const Machine& machine, int count) {
    for (int i = 0; i < count; ++i) {
      for (const StepSize& work : {Chunk(128, 300), Decodes(3, 400)}) {
        times.Observe(work, machine.Time(work));
      }
    }
  };
  steps(fast, 50);
  steps(slow, 50);
  ExpectNear(times, slow, Chunk(128, 300), 0.15);
  ExpectNear(times, slow, Decodes(3, 400), 0.15);
}

// A step in a hundred that waits for the processor.
TEST(StepTimesTest, AccidentsMoveItLittle) {
  const Machine machine{3, 0.3, 2e-5, 0.4};
  StepTimes times({});
  for (int i = 0; i < 500; ++i) {
    const StepSize work = i % 2 == 0 ? Chunk(128, 300) : Decodes(3, 400);
    times.Observe(work, machine.Time(work) * (i % 100 == 99 ? 50 : 1));
    if (i > 50) ExpectNear(times, machine, work, 0.2);
  }
}

TEST(StepTimesTest, TellsTheLineOnceItIsMeasured) {
  const Machine machine{3, 0.3, 2e-5, 0.4};
  StepTimes times({});
  EXPECT_EQ(times.costs(), StepCosts{});
  for (int i = 0; i < 50; ++i) {
    for (const StepSize& work :
         {Chunk(256, 0), Chunk(64, 4000), Decodes(1, 400), Decodes(16, 400)}) {
      times.Observe(work, machine.Time(work));
    }
  }
  const StepCosts costs = times.costs();
  EXPECT_NEAR(costs.step, 3e-3, 1e-3);
  EXPECT_NEAR(costs.row, 0.3e-3, 0.1e-3);
  EXPECT_NEAR(costs.pair, 2e-8, 1e-8);
  EXPECT_NEAR(costs.row + costs.sample, 0.7e-3, 0.1e-3);
}

TEST(StepTimesTest, NothingIsLearnedFromNothing) {
  StepTimes times({});
  const absl::Duration before = times.Predict(Chunk(10, 0));
  times.Observe({}, absl::Seconds(1));
  times.Observe(Chunk(10, 0), absl::ZeroDuration());
  EXPECT_EQ(times.Predict(Chunk(10, 0)), before);
}

}  // namespace
}  // namespace penstock
