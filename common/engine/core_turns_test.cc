#include "common/engine/core_turns.h"

#include <optional>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr absl::Duration kGap = absl::Milliseconds(50);

TEST(AnswerTurnTest, LeavesPromptsSevenParts) {
  EXPECT_EQ(AnswerTurn(absl::Milliseconds(3), 1, kGap), absl::Milliseconds(24));
}

TEST(AnswerTurnTest, WorkersWithAnswersShareTheEighth) {
  EXPECT_EQ(AnswerTurn(absl::Milliseconds(2), 2, kGap), absl::Milliseconds(32));
}

// 48 ms from the begin of one step, and 10 ms of the next, were too long.
TEST(AnswerTurnTest, TokensComeWithinTheGap) {
  EXPECT_EQ(AnswerTurn(absl::Milliseconds(10), 1, kGap),
            absl::Milliseconds(40));
  EXPECT_EQ(AnswerTurn(absl::Milliseconds(60), 1, kGap), absl::ZeroDuration());
}

TEST(AnswerTurnTest, WithoutAGapOnlyTheShareCounts) {
  EXPECT_EQ(AnswerTurn(absl::Seconds(1), 1, absl::ZeroDuration()),
            absl::Seconds(8));
}

class FakeLedger : public CoreLedger {
 public:
  void Claim(CoreUse use, Instant now) override {
    claim = use;
    until = now + kLease;
  }
  void Release() override { claim.reset(); }
  CoreClaims Others(Instant) const override { return others; }

  CoreClaims others;
  std::optional<CoreUse> claim;
  Instant until;
};

class CountingProbe : public EngineProbe {
 public:
  void WaitedForCores(absl::Duration waited) override { total += waited; }
  absl::Duration total;
};

class CoreTurnsTest : public testing::Test {
 protected:
  void Pass(int ms) { clock_.Advance(absl::Milliseconds(ms)); }
  void Step(CoreUse use, int ms) {
    turns_.Began(use);
    Pass(ms);
    turns_.Ended();
  }

  ManualClock clock_;
  Timers timers_;
  FakeLedger ledger_;
  CountingProbe probe_;
  CoreTurns turns_{kGap, {&ledger_, &clock_, &timers_, &probe_}};
};

TEST_F(CoreTurnsTest, AloneStepsFollowAtOnce) {
  Step(CoreUse::kAnswers, 3);
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kAnswers));
  EXPECT_EQ(timers_.size(), 0u);
  EXPECT_EQ(probe_.total, absl::ZeroDuration());
}

TEST_F(CoreTurnsTest, BesideOtherAnswersStepsFollowAtOnce) {
  ledger_.others.answers = 3;
  Step(CoreUse::kAnswers, 3);
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kAnswers));
}

TEST_F(CoreTurnsTest, AnswersWaitForTheirTurnBesideAPrompt) {
  ledger_.others.prompts = 1;
  Step(CoreUse::kAnswers, 3);
  const Instant turn = clock_.Now() + absl::Milliseconds(21);
  EXPECT_FALSE(turns_.MayBegin(CoreUse::kAnswers));
  EXPECT_FALSE(turns_.MayBegin(CoreUse::kAnswers));
  EXPECT_EQ(ledger_.claim, CoreUse::kAnswers);
  do {
    ASSERT_EQ(timers_.size(), 1u);
    ASSERT_GT(timers_.NextDeadline(), clock_.Now());
    clock_.AdvanceTo(timers_.NextDeadline());
    timers_.RunDue(clock_.Now());
  } while (!turns_.MayBegin(CoreUse::kAnswers));
  EXPECT_EQ(clock_.Now(), turn);
  EXPECT_EQ(probe_.total, absl::Milliseconds(21));
}

TEST_F(CoreTurnsTest, PromptsNeverWait) {
  ledger_.others = {2, 2};
  Step(CoreUse::kPrompts, 100);
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kPrompts));
}

// However long the turn is, the end of a prompt is seen soon.
TEST_F(CoreTurnsTest, LooksAgainBeforeALongTurn) {
  CoreTurns turns(absl::ZeroDuration(), {&ledger_, &clock_, &timers_, &probe_});
  ledger_.others.prompts = 1;
  turns.Began(CoreUse::kAnswers);
  Pass(1000);
  turns.Ended();
  EXPECT_FALSE(turns.MayBegin(CoreUse::kAnswers));
  EXPECT_LE(timers_.NextDeadline(), clock_.Now() + absl::Milliseconds(10));
}

// It ended, or died and its claim is over.
TEST_F(CoreTurnsTest, TheWaitEndsWithThePrompt) {
  ledger_.others.prompts = 1;
  Step(CoreUse::kAnswers, 3);
  EXPECT_FALSE(turns_.MayBegin(CoreUse::kAnswers));
  Pass(5);
  ledger_.others.prompts = 0;
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kAnswers));
  EXPECT_EQ(timers_.size(), 0u);
  EXPECT_EQ(probe_.total, absl::Milliseconds(5));
}

TEST_F(CoreTurnsTest, TheFirstAnswerGoesAtOnce) {
  ledger_.others.prompts = 1;
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kAnswers));
  Step(CoreUse::kAnswers, 3);
  turns_.Idle();
  Pass(1000);
  EXPECT_TRUE(turns_.MayBegin(CoreUse::kAnswers));
}

TEST_F(CoreTurnsTest, AStepIsClaimedAndRenewedUntilIdle) {
  turns_.Began(CoreUse::kPrompts);
  EXPECT_EQ(ledger_.claim, CoreUse::kPrompts);
  const Instant until = ledger_.until;
  Pass(200);
  turns_.Renew();
  EXPECT_EQ(ledger_.claim, CoreUse::kPrompts);
  EXPECT_EQ(ledger_.until - until, absl::Milliseconds(200));
  turns_.Ended();
  EXPECT_TRUE(ledger_.claim.has_value());
  turns_.Idle();
  EXPECT_FALSE(ledger_.claim.has_value());
}

TEST(CoreTurnsWithoutLedgerTest, NobodyWaits) {
  CoreTurns turns(kGap, {});
  EXPECT_FALSE(turns.shares());
  EXPECT_TRUE(turns.MayBegin(CoreUse::kAnswers));
  turns.Began(CoreUse::kAnswers);
  turns.Renew();
  turns.Ended();
  turns.Idle();
}

}  // namespace
}  // namespace penstock
