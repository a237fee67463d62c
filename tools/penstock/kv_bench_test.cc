#include "tools/penstock/kv_bench.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

// A prompt of 30 and 3 tokens: 31, 32 and 33 positions in 2, 2 and 3 blocks.
TEST(KvBenchTest, CountsSlotsStepByStep) {
  const auto memory = MeasureFragmentation({{{30, 3}}}, 100);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->steps, 3);
  EXPECT_EQ(memory->used, 31 + 32 + 33);
  ASSERT_EQ(memory->schemes.size(), 4u);
  EXPECT_EQ(memory->schemes[0].reserved, 32 + 32 + 48);
  EXPECT_EQ(memory->schemes[1].reserved, 3 * 33);
  EXPECT_EQ(memory->schemes[2].reserved, 3 * 64);
  EXPECT_EQ(memory->schemes[3].reserved, 3 * 100);
}

TEST(KvBenchTest, TheLongestIsThatOfTheLoad) {
  const auto memory = MeasureFragmentation({{{30, 2}, {60, 2}}}, 0);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->schemes[3].reserved, 4 * 62);
  EXPECT_FALSE(MeasureFragmentation({}, 0).ok());
}

// The prompt's full blocks once, and the others for each: no position is
// computed for an answer's last token.
TEST(KvBenchTest, SamplesShareThePromptsFullBlocks) {
  const auto sharing = MeasureSharing({.length = {1000, 200}, .answers = 4});
  ASSERT_TRUE(sharing.ok()) << sharing.status();
  EXPECT_EQ(sharing->separate_blocks, 4 * 75);
  EXPECT_EQ(sharing->peak_blocks, 62 + 4 * 13);
}

// Beams part later and later: they share more than samples do.
TEST(KvBenchTest, BeamsShareMore) {
  const KvSharingOptions options{.length = {1000, 200}, .answers = 4};
  KvSharingOptions beams = options;
  beams.beams = true;
  const auto samples_share = MeasureSharing(options);
  const auto beams_share = MeasureSharing(beams);
  ASSERT_TRUE(samples_share.ok() && beams_share.ok());
  EXPECT_LE(beams_share->peak_blocks, samples_share->peak_blocks);
  EXPECT_GE(beams_share->peak_blocks, 75);
}

TEST(KvBenchTest, WhatIsOutOfRangeIsRefused) {
  EXPECT_FALSE(MeasureSharing({.length = {0, 1}}).ok());
  EXPECT_FALSE(MeasureSharing({.length = {1, 1 << 17}}).ok());
  EXPECT_FALSE(MeasureSharing({.answers = 17}).ok());
}

}  // namespace
}  // namespace penstock
