#include "router/core/decision_journal.h"

#include "gtest/gtest.h"
#include "router/core/router_fakes.h"

namespace penstock {
namespace {

class DecisionJournalTest : public ::testing::Test {
 protected:
  void Place(uint64_t request, uint32_t attempt = 1, int predicted = 0) {
    PlacementFacts facts;
    facts.request = RequestId(request);
    facts.attempt = AttemptId(attempt);
    facts.decode = "d";
    facts.prompt_tokens = 100;
    facts.hit_tokens = predicted;
    Placement placement;
    placement.first_token = absl::Seconds(3);
    journal_.Placed(facts, placement);
  }

  ManualClock clock_;
  FakeProbe probe_;
  DecisionJournal journal_{3, &clock_, &probe_};
};

TEST_F(DecisionJournalTest, EachPlacementIsJudgedOnceWithWhatCameOfIt) {
  Place(1, 1, 64);
  clock_.Advance(absl::Seconds(5));
  journal_.FirstToken(RequestId(1));
  clock_.Advance(absl::Seconds(5));
  journal_.FirstToken(RequestId(1));
  EXPECT_TRUE(probe_.judged.empty());
  journal_.Ended(RequestId(1), 48);
  journal_.Ended(RequestId(1), 48);
  journal_.Ended(RequestId(2), 48);
  ASSERT_EQ(probe_.judged.size(), 1u);
  const DecisionOutcome& outcome = probe_.judged[0];
  EXPECT_EQ(outcome.predicted_first_token, absl::Seconds(3));
  EXPECT_EQ(outcome.first_token, absl::Seconds(5));
  EXPECT_EQ(outcome.predicted_hit_tokens, 64);
  EXPECT_EQ(outcome.hit_tokens, 48);
  EXPECT_DOUBLE_EQ(probe_.hit_error, 0.16);
}

TEST_F(DecisionJournalTest, AnAttemptThatFailedIsJudgedWithoutHits) {
  Place(1, 1);
  clock_.Advance(absl::Seconds(1));
  Place(1, 2);
  ASSERT_EQ(probe_.judged.size(), 1u);
  EXPECT_EQ(probe_.judged[0].attempt, AttemptId(1));
  EXPECT_FALSE(probe_.judged[0].hit_tokens.has_value());
  EXPECT_FALSE(probe_.judged[0].first_token.has_value());
  clock_.Advance(absl::Seconds(1));
  journal_.FirstToken(RequestId(1));
  journal_.Ended(RequestId(1), std::nullopt);
  EXPECT_EQ(probe_.judged[1].attempt, AttemptId(2));
  EXPECT_EQ(probe_.judged[1].first_token, absl::Seconds(1));
}

TEST_F(DecisionJournalTest, OneOfThreeIsRecorded) {
  std::string wants;
  for (uint64_t request = 1; request <= 7; ++request) {
    wants += journal_.WantsRecord() ? "x" : ".";
    Place(request);
  }
  EXPECT_EQ(wants, "x..x..x");
  EXPECT_FALSE(DecisionJournal(0, &clock_, &probe_).WantsRecord());
}

TEST_F(DecisionJournalTest, TheAlarmRisesWhenHitsDoNotCome) {
  for (uint64_t request = 1; request <= 200; ++request) {
    Place(request, 1, 80);
    journal_.Ended(RequestId(request), request < 150 ? 80 : 0);
  }
  EXPECT_TRUE(probe_.hit_alarm);
}

}  // namespace
}  // namespace penstock
