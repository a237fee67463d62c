#include "router/core/attempt.h"

#include <set>
#include <utility>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/router_fakes.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Next = AttemptStep::Next;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

Attempt Make(bool handoff) {
  Attempt::Leg decode, prefill;
  decode.id = 1;
  decode.worker.name = "d";
  prefill.id = 2;
  prefill.worker.name = "p";
  return Attempt(AttemptId(1), std::move(decode),
                 handoff ? std::optional(std::move(prefill)) : std::nullopt);
}

// The table, written out once more: whatever is not listed is forbidden.
TEST(AttemptTest, OnlyListedTransitionsMayHappen) {
  using S = AttemptState;
  const std::set<std::pair<S, S>> allowed = {
      {S::kOpening, S::kAccepted},    {S::kOpening, S::kSettling},
      {S::kOpening, S::kFailed},      {S::kOpening, S::kAbandoned},
      {S::kAccepted, S::kStreaming},  {S::kAccepted, S::kSucceeded},
      {S::kAccepted, S::kSettling},   {S::kAccepted, S::kFailed},
      {S::kAccepted, S::kAbandoned},  {S::kStreaming, S::kSucceeded},
      {S::kStreaming, S::kSettling},  {S::kStreaming, S::kFailed},
      {S::kStreaming, S::kAbandoned}, {S::kSettling, S::kFailed},
      {S::kSettling, S::kAbandoned},
  };
  for (int from = 0; from < 7; ++from) {
    for (int to = 0; to < 7; ++to) {
      S a = static_cast<S>(from), b = static_cast<S>(to);
      EXPECT_EQ(MayFollow(a, b), allowed.contains({a, b}))
          << AttemptStateName(a) << " -> " << AttemptStateName(b);
    }
  }
}

TEST(AttemptTest, WalksFromOpeningToSuccess) {
  Attempt attempt = Make(true);
  EXPECT_FALSE(attempt.OnAccepted(kD).admitted);
  EXPECT_EQ(attempt.state(), AttemptState::kOpening);
  EXPECT_TRUE(attempt.OnAccepted(kP).admitted);
  EXPECT_FALSE(attempt.OnAccepted(kP).admitted);
  EXPECT_EQ(attempt.state(), AttemptState::kAccepted);
  EXPECT_EQ(attempt.OnFrame(kP, FakeFrame(0, 1)).frames.size(), 1u);
  EXPECT_EQ(attempt.state(), AttemptState::kStreaming);
  EXPECT_EQ(attempt.OnLegFinished(kP, absl::OkStatus()).next, Next::kGoOn);
  AttemptStep last = attempt.OnFrame(kD, FakeFrame(1, 1, FinishReason::kStop));
  EXPECT_EQ(last.next, Next::kEnd);
  EXPECT_TRUE(last.status.ok());
  EXPECT_EQ(last.frames.size(), 1u);
  EXPECT_EQ(attempt.state(), AttemptState::kSucceeded);
  EXPECT_THAT(attempt.unfinished(), ElementsAre(1));
  EXPECT_EQ(attempt.OnLegFinished(kD, absl::InternalError("late")).next,
            Next::kGoOn);
  EXPECT_THAT(attempt.unfinished(), IsEmpty());
}

TEST(AttemptTest, AStopWithoutATokenSucceeds) {
  Attempt attempt = Make(false);
  attempt.OnAccepted(kD);
  AttemptStep step = attempt.OnFrame(kD, FakeFrame(0, 0, FinishReason::kStop));
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_EQ(step.frames.size(), 1u);
  EXPECT_EQ(attempt.state(), AttemptState::kSucceeded);
}

TEST(AttemptTest, ACompleteAnswerNeedsNoAcceptance) {
  Attempt attempt = Make(true);
  AttemptStep step = attempt.OnFrame(kP, FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(step.admitted);
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_TRUE(step.status.ok());
}

TEST(AttemptTest, EachLegIsCancelledOnce) {
  Attempt attempt = Make(true);
  EXPECT_TRUE(attempt.TakeCancel(kP));
  EXPECT_FALSE(attempt.TakeCancel(kP));
  EXPECT_THAT(attempt.TakeCancellable(), ElementsAre(1));
  EXPECT_THAT(attempt.TakeCancellable(), IsEmpty());
}

TEST(AttemptTest, PrefillThatEndsWithoutATokenFails) {
  Attempt attempt = Make(true);
  attempt.OnAccepted(kD);
  AttemptStep step = attempt.OnLegFinished(kP, absl::OkStatus());
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_EQ(ErrorInfoOf(step.status).reason, ErrorReason::kInternal);
}

// Who ends first with what, who ends second with what, what it comes to.
TEST(AttemptTest, ReasonsAndBlame) {
  using R = ErrorReason;
  struct Case {
    LegKind first;
    R first_reason;
    R second_reason;
    R expected;
    Blame blame;
  };
  const Case cases[] = {
      {kP, R::kTransferFailed, R::kKvTooSmall, R::kKvTooSmall, Blame::kDecode},
      {kP, R::kTransferFailed, R::kCancelled, R::kTransferFailed, Blame::kPair},
      {kD, R::kTransferFailed, R::kInternal, R::kInternal, Blame::kPrefill},
      {kD, R::kTransferFailed, R::kWorkerLost, R::kWorkerLost, Blame::kPair},
      {kD, R::kWorkerLost, R::kCancelled, R::kWorkerLost, Blame::kPair},
      {kP, R::kQueueFull, R::kCancelled, R::kQueueFull, Blame::kPrefill},
      {kP, R::kQueueFull, R::kQueueFull, R::kQueueFull, Blame::kDecode},
      {kD, R::kCancelled, R::kCancelled, R::kTransferFailed, Blame::kPair},
  };
  for (const Case& c : cases) {
    Attempt attempt = Make(true);
    LegKind second = c.first == kP ? kD : kP;
    EXPECT_EQ(
        attempt.OnLegFinished(c.first, MakeError(c.first_reason, "a")).next,
        Next::kSettle);
    EXPECT_EQ(attempt.state(), AttemptState::kSettling);
    EXPECT_EQ(attempt.OnFrame(second, FakeFrame(9, 1)).next, Next::kGoOn);
    AttemptStep end =
        attempt.OnLegFinished(second, MakeError(c.second_reason, "b"));
    EXPECT_EQ(end.next, Next::kEnd);
    EXPECT_EQ(ErrorInfoOf(end.status).reason, c.expected)
        << ReasonName(c.first_reason) << " " << ReasonName(c.second_reason);
    EXPECT_EQ(end.blame, c.blame)
        << ReasonName(c.first_reason) << " " << ReasonName(c.second_reason);
  }
}

TEST(AttemptTest, AClearReasonEndsAtOnce) {
  for (ErrorReason reason :
       {ErrorReason::kKvTooSmall, ErrorReason::kInternal,
        ErrorReason::kDeadline, ErrorReason::kInvalidField}) {
    Attempt attempt = Make(true);
    AttemptStep step = attempt.OnLegFinished(kP, MakeError(reason, "x"));
    EXPECT_EQ(step.next, Next::kEnd);
    EXPECT_EQ(step.blame, Blame::kPrefill);
  }
}

// The other leg's worker learns of the loss too, and says what it keeps.
TEST(AttemptTest, ALostWorkersPartnerIsHeard) {
  const absl::Status lost = MakeError(ErrorReason::kWorkerLost, "gone");
  Attempt attempt = Make(true);
  EXPECT_EQ(attempt.OnWorkerLost(kD, lost).next, Next::kSettle);
  EXPECT_THAT(attempt.unfinished(), ElementsAre(1, 2));
  AttemptStep step = attempt.OnLegFinished(
      kP, WithKeptTokens(MakeError(ErrorReason::kTransferFailed, "alone"), 48));
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_EQ(step.status, lost) << "the loss explains the rest";
  EXPECT_EQ(step.blame, Blame::kNobody);
  ASSERT_EQ(attempt.kept().size(), 1u);
  EXPECT_EQ(attempt.kept()[0].worker.name, "p");
  EXPECT_EQ(attempt.kept()[0].tokens, 48);
  attempt.OnLegFinished(kD, absl::CancelledError("late"));
  EXPECT_THAT(attempt.unfinished(), IsEmpty());
}

TEST(AttemptTest, ALostWorkersPartnerIsNotWaitedForForEver) {
  Attempt attempt = Make(true);
  attempt.OnWorkerLost(kP, MakeError(ErrorReason::kWorkerLost, "gone"));
  AttemptStep step = attempt.OnTimeout();
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_EQ(step.blame, Blame::kNobody);
  EXPECT_THAT(attempt.TakeCancellable(), ElementsAre(1, 2));
  // Whatever a worker says after it was lost is not believed.
  attempt.OnLegFinished(
      kP, WithKeptTokens(MakeError(ErrorReason::kCancelled, "late"), 48));
  EXPECT_THAT(attempt.kept(), IsEmpty());
}

// Decode ended well: prefill's one token must have ended the request. When its
// frame does not come, no worker did wrong, and another attempt may do better.
TEST(AttemptTest, AFrameThatIsLateIsNobodysFault) {
  Attempt attempt = Make(true);
  attempt.OnAccepted(kP);
  EXPECT_EQ(attempt.OnLegFinished(kD, absl::OkStatus()).next, Next::kAwait);
  AttemptStep step = attempt.OnTimeout();
  EXPECT_EQ(step.next, Next::kEnd);
  EXPECT_EQ(ErrorInfoOf(step.status).reason, ErrorReason::kTransferFailed);
  EXPECT_EQ(step.blame, Blame::kNobody);
}

TEST(AttemptTest, AnAbandonedAttemptAbsorbsEverything) {
  Attempt attempt = Make(true);
  attempt.Abandon();
  EXPECT_FALSE(attempt.OnAccepted(kD).admitted);
  EXPECT_EQ(attempt.OnFrame(kP, FakeFrame(0, 1)).next, Next::kGoOn);
  EXPECT_EQ(attempt.OnLegFinished(kP, absl::OkStatus()).next, Next::kGoOn);
  EXPECT_EQ(attempt.OnWorkerLost(kD, absl::UnavailableError("x")).next,
            Next::kGoOn);
  EXPECT_EQ(attempt.OnTimeout().next, Next::kGoOn);
  attempt.Abandon();
  EXPECT_EQ(attempt.state(), AttemptState::kAbandoned);
}

}  // namespace
}  // namespace penstock
