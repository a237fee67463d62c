#include "kernels/host/plan_check.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr PlanBounds kBounds = {
    .max_rows = 8, .max_sequences = 2, .vocab_size = 100, .arena_blocks = 4};

// A chunk at positions 15-17 and a decode row at position 3, rows crossed.
StepPlan GoodPlan() {
  StepPlan plan;
  plan.tokens = {0, 99, 5, 6};
  plan.positions = {3, 15, 16, 17};
  plan.sequences = {{.first_row = 1, .rows = 3, .first_block = 1, .blocks = 2},
                    {.first_row = 0, .rows = 1, .first_block = 0, .blocks = 1}};
  plan.block_table = {3, 0, 2};
  plan.samples.resize(1);
  plan.samples[0].row = 3;
  plan.scores = {{.row = 0, .token = 99, .best = 0}};
  plan.copies = {{.from = 1, .to = 3}};
  return plan;
}

TEST(PlanCheckTest, AcceptsAPlanWithinBounds) {
  CheckPlan(GoodPlan(), kBounds);
}

struct BadPlan {
  const char* what;
  void (*spoil)(StepPlan&);
};

class PlanCheckDeathTest : public ::testing::TestWithParam<BadPlan> {};

TEST_P(PlanCheckDeathTest, Dies) {
  StepPlan plan = GoodPlan();
  GetParam().spoil(plan);
  EXPECT_DEATH(CheckPlan(plan, kBounds), GetParam().what);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, PlanCheckDeathTest,
    ::testing::Values(
        BadPlan{"0 rows",
                [](StepPlan& p) {
                  p.tokens.clear();
                  p.positions.clear();
                }},
        BadPlan{"9 rows",
                [](StepPlan& p) {
                  p.tokens.resize(9);
                  p.positions.resize(9);
                }},
        BadPlan{"4 rows", [](StepPlan& p) { p.positions.pop_back(); }},
        BadPlan{"3 sequences",
                [](StepPlan& p) { p.sequences.push_back(p.sequences[0]); }},
        BadPlan{"two sequences",
                [](StepPlan& p) {
                  p.sequences[0].first_row = 0;
                  p.positions = {15, 16, 17, 3};
                }},
        BadPlan{"rows of a sequence",
                [](StepPlan& p) { p.sequences[0].first_row = 2; }},
        BadPlan{"no sequence", [](StepPlan& p) { p.sequences.pop_back(); }},
        BadPlan{"position of row 3", [](StepPlan& p) { p.positions[3] = 18; }},
        BadPlan{"reach position -1", [](StepPlan& p) { p.positions[0] = -1; }},
        BadPlan{"reach position 17",
                [](StepPlan& p) { p.sequences[0].blocks = 1; }},
        BadPlan{"blocks of a sequence",
                [](StepPlan& p) { p.sequences[0].first_block = 2; }},
        BadPlan{"block 4", [](StepPlan& p) { p.block_table[2] = 4; }},
        BadPlan{"block -1", [](StepPlan& p) { p.block_table[0] = -1; }},
        BadPlan{"token 100", [](StepPlan& p) { p.tokens[1] = 100; }},
        BadPlan{"token -1", [](StepPlan& p) { p.tokens[1] = -1; }},
        BadPlan{"scored row -1", [](StepPlan& p) { p.scores[0].row = -1; }},
        BadPlan{"score of token 100",
                [](StepPlan& p) { p.scores[0].token = 100; }},
        BadPlan{"the best -1", [](StepPlan& p) { p.scores[0].best = -1; }},
        BadPlan{"sampled row 4", [](StepPlan& p) { p.samples[0].row = 4; }},
        BadPlan{"copy of block 1 to 1",
                [](StepPlan& p) { p.copies[0].to = 1; }},
        BadPlan{"copy of block 4", [](StepPlan& p) { p.copies[0].from = 4; }}));

}  // namespace
}  // namespace penstock
