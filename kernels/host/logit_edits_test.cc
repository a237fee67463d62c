#include "kernels/host/logit_edits.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host/row_scans.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

SampleHistory History(std::vector<TokenId> tokens, int prompt_tokens = 0,
                      std::vector<TokenId> breakers = {}) {
  SampleHistory history;
  history.tokens = std::move(tokens);
  history.prompt_tokens = prompt_tokens;
  history.dry_breakers = std::move(breakers);
  return history;
}

TEST(TokenPenaltiesTest, CountsWhatEachPenaltyCounts) {
  TokenPenalties penalties;
  // Token 0 is in the prompt, 1 in both, 2 twice in the answer, 3 nowhere.
  const SampleHistory history = History({0, 1, 1, 2, 2}, 2);
  auto changed = [&](PenaltyParams params) {
    std::vector<float> logits = {4, -4, 4, 4};
    penalties.Apply(params, history, absl::MakeSpan(logits));
    return logits;
  };
  EXPECT_THAT(changed({.repetition = 2}), ElementsAre(2, -8, 2, 4));
  EXPECT_THAT(changed({.frequency = 1}), ElementsAre(4, -5, 2, 4));
  EXPECT_THAT(changed({.presence = 1}), ElementsAre(4, -5, 3, 4));
  EXPECT_THAT(changed({2, 1, 1, -1}), ElementsAre(2, -10, -1, 4));
  EXPECT_THAT(changed({2, 1, 0, 1}), ElementsAre(4, -4, 1, 4));
  EXPECT_THAT(changed({2, 1, 1, 0}), ElementsAre(4, -4, 4, 4));
}

class DryPenaltyTest : public ::testing::Test {
 protected:
  // What is taken off each of ten tokens.
  std::vector<float> Taken(const SampleHistory& history, int allowed,
                           int window = -1) {
    std::vector<float> logits(10, 0.0f);
    dry_.Apply({.multiplier = 1,
                .base = 2,
                .allowed_length = allowed,
                .window = window},
               history, absl::MakeSpan(logits));
    for (float& logit : logits) logit = 0 - logit;
    return logits;
  }
  DryPenalty dry_;
};

TEST_F(DryPenaltyTest, TheLongestRunOfEachTokenCounts) {
  // The end 4 5 6 was followed by 7; 5 6 by 8; 6 by 9.
  const SampleHistory history =
      History({4, 5, 6, 7, 0, 5, 6, 8, 1, 6, 9, 2, 6, 8, 4, 5, 6});
  EXPECT_THAT(Taken(history, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0, 4, 2, 1));
  EXPECT_THAT(Taken(history, 2), ElementsAre(0, 0, 0, 0, 0, 0, 0, 2, 1, 0));
  EXPECT_THAT(Taken(history, 3), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(Taken(history, 4), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  // The last 13 tokens no longer hold 4 5 6 7.
  EXPECT_THAT(Taken(history, 1, 13), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 2, 1));
}

TEST_F(DryPenaltyTest, NoRunHoldsABreakerAndBreakersLoseNothing) {
  const std::vector<TokenId> text = {5, 1, 6, 7, 3, 5, 1, 6};
  EXPECT_THAT(Taken(History(text), 1),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 4, 0, 0));
  EXPECT_THAT(Taken(History(text, 0, {1}), 1),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(Taken(History(text, 0, {1}), 2),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Taken(History(text, 0, {7}), 1),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Taken(History(text, 0, {6}), 1),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST_F(DryPenaltyTest, RunsMayOverlapThemselves) {
  EXPECT_THAT(Taken(History({3, 3, 3, 3}), 1),
              ElementsAre(0, 0, 0, 4, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Taken(History({}), 1), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(TokenChoiceTest, BiasThenAllowedThenBanned) {
  SampleRow row;
  row.params.logit_bias = {{1, 5}, {3, -100}};
  row.params.allowed_tokens = {1, 2, 3};
  row.banned = {2};
  std::vector<float> logits(5, 1.0f);
  ApplyTokenChoice(row, absl::MakeSpan(logits));
  EXPECT_THAT(logits, ElementsAre(kExcludedLogit, 6, kExcludedLogit, -99,
                                  kExcludedLogit));
}

}  // namespace
}  // namespace penstock
