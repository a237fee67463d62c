#include "router/core/hindsight.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

// p1 was chosen; p1, p2 and p3 were predicted to take 2, 3 and 4 s.
DecisionOutcome Outcome(std::optional<absl::Duration> first_token) {
  auto record = std::make_shared<DecisionRecord>();
  record->prefill.emplace();
  record->prefill->chosen = {"p1", 0, absl::Seconds(2)};
  record->prefill->best = {{"p1", 0, absl::Seconds(2)},
                           {"p2", 0, absl::Seconds(3)},
                           {"p3", 0, absl::Seconds(4)}};
  DecisionOutcome outcome;
  outcome.first_token = first_token;
  outcome.record = record;
  return outcome;
}

TEST(HindsightTest, ALateFirstTokenIsRegretted) {
  EXPECT_EQ(RegretInHindsight(Outcome(absl::Seconds(8))), absl::Seconds(5));
  EXPECT_EQ(RegretInHindsight(Outcome(absl::Seconds(3))), absl::ZeroDuration());
  EXPECT_EQ(RegretInHindsight(Outcome(absl::Seconds(1))), absl::ZeroDuration());
}

TEST(HindsightTest, AWorseChoiceIsComparedWithTheBest) {
  DecisionOutcome outcome = Outcome(absl::Seconds(8));
  auto record = std::make_shared<DecisionRecord>(*outcome.record);
  record->prefill->chosen = record->prefill->best[2];
  outcome.record = record;
  EXPECT_EQ(RegretInHindsight(outcome), absl::Seconds(6));
}

TEST(HindsightTest, WithoutAnotherThereIsNothingToRegret) {
  EXPECT_EQ(RegretInHindsight(Outcome(std::nullopt)), std::nullopt);
  DecisionOutcome outcome = Outcome(absl::Seconds(8));
  auto record = std::make_shared<DecisionRecord>(*outcome.record);
  record->prefill->best.resize(1);
  outcome.record = record;
  EXPECT_EQ(RegretInHindsight(outcome), std::nullopt);
  record = std::make_shared<DecisionRecord>();
  outcome.record = record;  // decode prefilled
  EXPECT_EQ(RegretInHindsight(outcome), std::nullopt);
  outcome.record = nullptr;
  EXPECT_EQ(RegretInHindsight(outcome), std::nullopt);
}

}  // namespace
}  // namespace penstock
