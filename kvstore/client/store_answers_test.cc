#include "kvstore/client/store_answers.h"

#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

Instant At(int ms) { return Instant::FromNanos(int64_t{1000000} * ms); }

std::vector<BlockHash> Chain(int first, int count) {
  std::vector<BlockHash> chain;
  for (int i = 0; i < count; ++i) chain.push_back(BlockHash(first + i));
  return chain;
}

class StoreAnswersTest : public testing::Test {
 protected:
  StoreAnswers answers_{absl::Milliseconds(100)};
};

TEST_F(StoreAnswersTest, AsksOnceAndBelievesForAWhile) {
  const auto chain = Chain(1, 5);
  auto belief = answers_.Look(1, chain, At(0));
  EXPECT_TRUE(belief.ask && belief.asking);
  EXPECT_EQ(belief.blocks, 0);
  belief = answers_.Look(2, chain, At(10));
  EXPECT_TRUE(belief.asking);
  EXPECT_FALSE(belief.ask);
  answers_.Found(1, 3, At(20));
  belief = answers_.Look(3, chain, At(119));
  EXPECT_FALSE(belief.asking);
  EXPECT_EQ(belief.blocks, 3);
  EXPECT_TRUE(answers_.Holds(BlockHash(3), At(119)));
  EXPECT_FALSE(answers_.Holds(BlockHash(4), At(119)));
  belief = answers_.Look(4, chain, At(120));
  EXPECT_TRUE(belief.ask);
  EXPECT_EQ(belief.blocks, 0);
}

// A prefix of what is known to be held needs no question.
TEST_F(StoreAnswersTest, AnswersForOneChainServeOthers) {
  answers_.Look(1, Chain(1, 5), At(0));
  answers_.Found(1, 5, At(0));
  const auto belief = answers_.Look(2, Chain(2, 3), At(1));
  EXPECT_FALSE(belief.asking);
  EXPECT_EQ(belief.blocks, 3);
  answers_.SetHeld(BlockHash(6), At(1));
  EXPECT_EQ(answers_.Look(3, Chain(1, 6), At(2)).blocks, 6);
}

TEST_F(StoreAnswersTest, WhatIsDoubtedIsAskedAnew) {
  const auto chain = Chain(1, 3);
  answers_.Look(1, chain, At(0));
  answers_.Found(1, 3, At(0));
  answers_.Doubt(BlockHash(2));
  const auto belief = answers_.Look(2, chain, At(1));
  EXPECT_TRUE(belief.ask);
  EXPECT_EQ(belief.blocks, 1);
}

TEST_F(StoreAnswersTest, AStoreThatLeftIsAskedAgain) {
  const auto chain = Chain(1, 3);
  answers_.Look(1, chain, At(0));
  answers_.Clear();
  answers_.Found(1, 3, At(1));
  EXPECT_TRUE(answers_.Look(2, chain, At(2)).ask);
}

TEST_F(StoreAnswersTest, CountsFromOutsideAreBounded) {
  for (int told : {-5, 1000000}) {
    StoreAnswers answers(absl::Milliseconds(100));
    answers.Look(1, Chain(1, 3), At(0));
    answers.Found(1, told, At(0));
    EXPECT_EQ(answers.Look(2, Chain(1, 3), At(1)).blocks, told < 0 ? 0 : 3);
  }
}

TEST_F(StoreAnswersTest, ASilentStoreIsNotAskedWithoutEnd) {
  int asked = 0;
  for (int i = 0; i < 10000; ++i) {
    asked += answers_.Look(i + 1, Chain(10 * i + 1, 2), At(0)).ask;
  }
  EXPECT_EQ(asked, 4096);
}

}  // namespace
}  // namespace penstock
