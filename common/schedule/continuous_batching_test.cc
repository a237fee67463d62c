#include <map>

#include "common/schedule/batch_policy.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

EngineView View(std::vector<SequenceView> sequences, int free_blocks) {
  EngineView view;
  view.sequences = std::move(sequences);
  view.free_blocks = free_blocks;
  view.max_rows = 64;
  view.max_sequences = 8;
  view.prefill_chunk = 32;
  view.watermark_blocks = 1;
  return view;
}

// What the sequences have in common with others.
EngineView Sharing(EngineView view, std::map<SequenceId, SharedBlocks> shared) {
  view.shared = [shared](SequenceId id) {
    auto it = shared.find(id);
    return it == shared.end() ? SharedBlocks() : it->second;
  };
  return view;
}

SequenceView Running(uint64_t id, int length, int computed) {
  return {SequenceId(id), 0, length, computed, (computed + 15) / 16, true};
}

SequenceView Waiting(uint64_t id, int length, int priority = 0) {
  return {SequenceId(id), priority, length, 0, 0, false};
}

std::map<uint64_t, int> RowsOf(const BatchDecision& decision) {
  std::map<uint64_t, int> rows;
  for (const auto& r : decision.rows) rows[r.id.value()] = r.rows;
  return rows;
}

BatchDecision Plan(const EngineView& view) {
  return MakeContinuousBatching()->Plan(view, Instant());
}

TEST(ContinuousBatchingTest, DecodesGoFirstThenChunks) {
  auto d = Plan(View({Running(1, 100, 16), Running(2, 17, 16)}, 20));
  ASSERT_EQ(d.rows.size(), 2u);
  EXPECT_EQ(d.rows[0].id.value(), 2u);
  EXPECT_EQ(d.rows[0].rows, 1);
  EXPECT_EQ(d.rows[1].rows, 32);  // the chunk, not the whole prompt
}

// Steps of 2 ms, 0.1 ms a row, 1 us a pair and 0.5 ms a sample.
EngineView Timed(EngineView view, absl::Duration target) {
  view.step_target = target;
  view.step_time = [](const StepSize& work) {
    return absl::Microseconds(2000 + 100 * work.rows + work.pairs +
                              500 * work.samples);
  };
  return view;
}

TEST(ContinuousBatchingTest, ChunksFillTheTimeThatDecodesLeave) {
  // Three decodes take 3.8 ms and 48 us; 30 rows of a prompt behind 16 others
  // 3.9 ms and 15 us.
  const auto decodes = {Running(1, 17, 16), Running(2, 17, 16),
                        Running(3, 17, 16)};
  std::vector<SequenceView> all = decodes;
  all.push_back(Running(4, 500, 16));
  auto at = [&](int us) {
    return RowsOf(Plan(Timed(View(all, 90), absl::Microseconds(us))))[4];
  };
  EXPECT_EQ(at(3848 + 3000 + 30 * 16 + 30 * 29 / 2), 30);
  EXPECT_EQ(at(3848 + 3000 + 30 * 16 + 30 * 29 / 2 - 1), 29);
  EXPECT_EQ(at(100000), 32);  // never more than a chunk
  EXPECT_EQ(at(1000), 16);    // and never less than a block
}

TEST(ContinuousBatchingTest, OnlyTheFirstChunkMayBeLate) {
  const std::vector<SequenceView> all = {Running(1, 17, 16), Running(2, 500, 0),
                                         Running(3, 500, 0), Waiting(4, 100)};
  auto d = Plan(Timed(View(all, 90), absl::Milliseconds(1)));
  EXPECT_EQ(RowsOf(d), (std::map<uint64_t, int>{{1, 1}, {2, 16}}));
  EXPECT_TRUE(d.admit.empty());
  // There is no hurry when nobody decodes.
  const std::vector<SequenceView> prompts = {Running(2, 500, 0),
                                             Running(3, 500, 0)};
  d = Plan(Timed(View(prompts, 90), absl::Milliseconds(1)));
  EXPECT_EQ(RowsOf(d), (std::map<uint64_t, int>{{2, 32}, {3, 32}}));
}

// The row that ends a prompt costs what its logits cost.
TEST(ContinuousBatchingTest, TheEndOfAPromptIsPartOfItsTime) {
  const std::vector<SequenceView> all = {Running(1, 17, 16), Waiting(2, 20)};
  auto at = [&](int us) {
    return RowsOf(Plan(Timed(View(all, 90), absl::Microseconds(us))))[2];
  };
  const int decode = 2000 + 100 + 16 + 500;
  EXPECT_EQ(at(decode + 2000 + 190 + 500), 20);
  EXPECT_EQ(at(decode + 2000 + 190 + 499), 19);
}

TEST(ContinuousBatchingTest, TheTokenBudgetIsKept) {
  auto view = View({Waiting(1, 40), Waiting(2, 40), Waiting(3, 40)}, 100);
  auto d = Plan(view);
  auto rows = RowsOf(d);
  EXPECT_EQ(rows[1] + rows[2] + rows[3], 64);
  EXPECT_EQ(d.admit.size(), 2u);
}

TEST(ContinuousBatchingTest, AdmitsOnlyWhatFitsWithRoomToGrow) {
  // 40 tokens and one to come: 3 blocks each.
  auto d = Plan(View({Waiting(1, 40), Waiting(2, 40)}, 5));
  EXPECT_EQ(d.admit, (std::vector<SequenceId>{SequenceId(1)}));
  d = Plan(View({Waiting(1, 40), Waiting(2, 40)}, 7));
  EXPECT_EQ(d.admit.size(), 2u);
}

TEST(ContinuousBatchingTest, HigherPriorityWaitsLess) {
  auto d = Plan(View({Waiting(1, 40), Waiting(2, 40, 5)}, 3));
  EXPECT_EQ(d.admit, (std::vector<SequenceId>{SequenceId(2)}));
}

TEST(ContinuousBatchingTest, PreemptsTheYoungestNeverTheOldest) {
  // Both need a block for their next token; none is free.
  auto d = Plan(View({Running(1, 17, 16), Running(2, 17, 16)}, 0));
  EXPECT_EQ(d.preempt, (std::vector<SequenceId>{SequenceId(2)}));
  EXPECT_EQ(RowsOf(d), (std::map<uint64_t, int>{{1, 1}}));
}

TEST(ContinuousBatchingTest, ANewcomerIsNotAdmittedWhileOthersArePreempted) {
  auto d =
      Plan(View({Running(1, 17, 16), Running(2, 17, 16), Waiting(3, 1)}, 0));
  EXPECT_TRUE(d.admit.empty());
}

TEST(ContinuousBatchingTest, RunningPrefillsKeepTheirPromisedBlocks) {
  // The running one still needs 4 of the 5 free blocks.
  auto d = Plan(View({Running(1, 80, 16), Waiting(2, 20)}, 5));
  EXPECT_TRUE(d.admit.empty());
}

// Their first block is one and the same.
TEST(ContinuousBatchingTest, APreemptionFreesNoSharedBlock) {
  const auto view =
      View({Running(1, 33, 32), Running(2, 17, 16), Running(3, 17, 16)}, 0);
  auto d =
      Plan(Sharing(view, {{SequenceId(2), {0, 1}}, {SequenceId(3), {0, 1}}}));
  EXPECT_EQ(d.preempt, (std::vector<SequenceId>{SequenceId(3), SequenceId(2)}));
  EXPECT_TRUE(d.rows.empty());  // the next step knows what became free
  d = Plan(Sharing(view, {{SequenceId(2), {0, 1}}}));
  EXPECT_EQ(d.preempt, (std::vector<SequenceId>{SequenceId(3)}));
}

TEST(ContinuousBatchingTest, ACopiedTailTakesABlock) {
  auto sharing = Running(1, 20, 19);
  sharing.copies_tail = true;
  EXPECT_TRUE(Plan(View({sharing}, 0)).rows.empty());
  EXPECT_EQ(Plan(View({sharing}, 1)).rows.size(), 1u);
}

TEST(ContinuousBatchingTest, BlocksThatOthersHoldCostAWaitingOneNothing) {
  const auto view = View({Running(1, 40, 39), Waiting(2, 40)}, 2);
  auto d = Plan(Sharing(view, {{SequenceId(2), {2, 2}}}));
  EXPECT_EQ(d.admit, (std::vector<SequenceId>{SequenceId(2)}));
  EXPECT_TRUE(Plan(Sharing(view, {{SequenceId(2), {2, 1}}})).admit.empty());
}

TEST(ContinuousBatchingTest, ParkedOnesGiveWayWhenNothingElseCanRun) {
  auto first = Running(1, 40, 40), second = Running(2, 40, 40);
  first.parked = second.parked = true;
  auto d = Plan(View({first, second, Waiting(3, 40)}, 2));
  EXPECT_TRUE(d.rows.empty());
  EXPECT_EQ(d.preempt, (std::vector<SequenceId>{SequenceId(2)}));
  // Not while something runs, nor when nobody waits.
  EXPECT_TRUE(
      Plan(View({first, second, Running(3, 40, 39)}, 2)).preempt.empty());
  EXPECT_TRUE(Plan(View({first, second}, 2)).preempt.empty());
}

TEST(ContinuousBatchingTest, AStepHasItsMostSequences) {
  std::vector<SequenceView> many;
  for (int i = 1; i <= 12; ++i) many.push_back(Running(i, 10, 9));
  EXPECT_EQ(Plan(View(many, 50)).rows.size(), 8u);
}

TEST(ContinuousBatchingTest, ComputesUpToWhatIsBeingFetched) {
  SequenceView head = Running(1, 100, 16);
  head.limit = 32;
  SequenceView waits = Running(2, 100, 48);
  waits.limit = 48;
  auto d = Plan(View({head, waits, Running(3, 40, 39)}, 20));
  EXPECT_EQ(RowsOf(d), (std::map<uint64_t, int>{{1, 16}, {3, 1}}));
  EXPECT_TRUE(d.preempt.empty());
}

TEST(ContinuousBatchingTest, OneThatFetchesIsNoDeadEnd) {
  SequenceView parked = Running(1, 64, 64);
  parked.parked = true;
  SequenceView fetches = Running(2, 64, 16);
  auto view = View({parked, fetches, Waiting(3, 64)}, 0);
  view.sequences[1].limit = 16;
  EXPECT_TRUE(Plan(view).preempt.empty());
  // It is not in the way of an older one that has to grow, either.
  view = View({Running(1, 17, 16), fetches}, 0);
  view.sequences[1].limit = 16;
  auto d = Plan(view);
  ASSERT_EQ(d.preempt.size(), 1u);
  EXPECT_EQ(d.preempt[0].value(), 2u);
}

TEST(ContinuousBatchingTest, SaysWhenAllThatAreLeftNeedBlocks) {
  // Nobody is there, or somebody runs.
  EXPECT_FALSE(Plan(View({}, 0)).starved);
  EXPECT_FALSE(Plan(View({Running(1, 17, 16)}, 1)).starved);
  // One gives way first; then the oldest has nobody left.
  EXPECT_FALSE(Plan(View({Running(1, 17, 16), Running(2, 17, 16)}, 0)).starved);
  EXPECT_TRUE(Plan(View({Running(1, 17, 16), Waiting(2, 17)}, 0)).starved);
  EXPECT_TRUE(Plan(View({Running(1, 100, 16)}, 0)).starved);
  EXPECT_TRUE(Plan(View({Waiting(1, 40)}, 2)).starved);
  EXPECT_FALSE(Plan(View({Waiting(1, 40)}, 3)).starved);
}

TEST(ContinuousBatchingTest, WhoNeedsNoBlocksIsNotStarved) {
  // It waits for others of its group, whose turn it is.
  SequenceView parked = Running(1, 64, 64);
  parked.parked = true;
  EXPECT_FALSE(Plan(View({parked}, 0)).starved);
  EXPECT_FALSE(
      Plan(View({parked, Waiting(2, 40)}, 0)).starved);  // it gives way
  // Pages are on their way.
  SequenceView fetches = Running(2, 64, 16);
  fetches.limit = 16;
  EXPECT_FALSE(Plan(View({fetches, Waiting(3, 64)}, 0)).starved);
}

}  // namespace
}  // namespace penstock
