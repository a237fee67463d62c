// How a request goes on after tokens that its client has: on whom, with what,
// and that no token is given twice or left out.

#include <string>
#include <vector>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/router_core.h"
#include "router/core/router_fakes.h"
#include "router/core/testing/router_core_fixture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

class RouterCoreContinuationTest : public RouterCoreTest {
 protected:
  static TokenFrame Of(int sample, TokenFrame frame) {
    frame.sample = sample;
    return frame;
  }
};

TEST_F(RouterCoreContinuationTest, ALostDecodeIsReplacedInTheMiddleOfAStream) {
  Cluster(2, 2);
  Stream(3);
  const LegId old = d_;
  core_->OnWorkerLost(Leg(old).worker, absl::UnavailableError("broke"));
  TakeLastLegs();
  ASSERT_NE(d_, old);
  EXPECT_NE(Leg(d_).worker.name, Leg(old).worker.name);
  const LegRequest& leg = Leg(d_).request;
  EXPECT_THAT(leg.delivered,
              ElementsAre(ElementsAre(DeliveredToken{0}, DeliveredToken{1},
                                      DeliveredToken{2})));
  EXPECT_EQ(leg.history().size(), 103u);
  EXPECT_EQ(probe_.placements.back().prompt_tokens, 103);
  EXPECT_EQ(Leg(p_).request.delivered, leg.delivered);
  EXPECT_THAT(probe_.retried, ElementsAre(ErrorReason::kWorkerLost));
  Accept();
  EXPECT_EQ(client_.admissions, 1);
  // The first of the old attempt come late, the first of the new one twice.
  core_->OnLegFrame(old, FakeFrame(3, 2));
  core_->OnLegFrame(d_, FakeFrame(4, 1));
  EXPECT_EQ(client_.ids.size(), 3u);
  core_->OnLegFrame(p_, FakeFrame(3, 1));
  core_->OnLegFrame(p_, FakeFrame(3, 1));
  TokenFrame last = FakeFrame(5, 1, FinishReason::kLength);
  last.usage = {100, 103, 3};
  core_->OnLegFrame(d_, last);
  EXPECT_TRUE(client_.status.ok()) << client_.status;
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(client_.placement.decode, Leg(d_).worker.name);
  EXPECT_EQ(client_.last.usage.prompt_tokens, 100);
  EXPECT_EQ(client_.last.usage.cached_tokens, 100);
  EXPECT_EQ(client_.last.usage.completion_tokens, 6);
  EXPECT_EQ(probe_.outcomes[0].delivered_tokens, 6);
  EXPECT_EQ(probe_.outcomes[0].usage.completion_tokens, 6);
  EXPECT_EQ(probe_.first_tokens.size(), 1u);
}

TEST_F(RouterCoreContinuationTest, TheSamplersStateGoesAlong) {
  Cluster(0, 2);
  Submit(Request(9));
  TokenFrame frame = FakeFrame(0, 2);
  frame.tokens[0].mirostat_mu = 9.5f;
  frame.tokens[1].mirostat_mu = 8.25f;
  core_->OnLegFrame(d_, frame);
  core_->OnLegFinished(d_, absl::UnavailableError("died"));
  EXPECT_THAT(Leg(legs_.Last(kD)).request.delivered,
              ElementsAre(ElementsAre(DeliveredToken{0, 9.5f},
                                      DeliveredToken{1, 8.25f})));
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(2, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

// Decode died before it had everything; prefill computes nothing twice.
TEST_F(RouterCoreContinuationTest, APrefillThatKeepsServesTheNextDecode) {
  Cluster(3, 2);
  Submit();
  Accept();
  const LegId old_p = p_;
  core_->OnWorkerLost(Leg(d_).worker, absl::UnavailableError("broke"));
  EXPECT_EQ(legs_.legs.size(), 2u);
  core_->OnLegFinished(old_p, Kept(ErrorReason::kWorkerLost, 100));
  ASSERT_EQ(legs_.legs.size(), 4u);
  TakeLastLegs();
  EXPECT_EQ(Leg(p_).worker, Leg(old_p).worker);
  EXPECT_EQ(probe_.placements.back().hit_tokens, 99);
}

// Prefill died on the way; decode has verified most of it.
TEST_F(RouterCoreContinuationTest, ADecodeThatKeepsComputesTheTail) {
  Cluster(2, 3);
  Submit();
  Accept();
  const LegId old_d = d_;
  core_->OnWorkerLost(Leg(p_).worker, absl::UnavailableError("broke"));
  core_->OnLegFinished(old_d, Kept(ErrorReason::kWorkerLost, 80));
  TakeLastLegs();
  EXPECT_EQ(Leg(d_).worker, Leg(old_d).worker);
  EXPECT_EQ(Leg(d_).request.partner.worker, "");
  EXPECT_EQ(probe_.placements.back().hit_tokens, 80);
}

TEST_F(RouterCoreContinuationTest, ADrainingDecodeHandsItsRequestsOver) {
  Cluster(1, 2);
  Stream(3);
  const std::string old = Leg(d_).worker.name;
  Beat(Leg(d_).worker, WorkerHealth::kDraining);
  EXPECT_EQ(legs_.legs.size(), 2u) << "what runs is moved by its worker";
  core_->OnLegFinished(d_, Kept(ErrorReason::kDraining, 102));
  ASSERT_EQ(legs_.legs.size(), 4u);
  TakeLastLegs();
  EXPECT_EQ(Leg(p_).worker.name, old) << "it prefills, whatever its role";
  EXPECT_NE(Leg(d_).worker.name, old);
  EXPECT_EQ(Leg(p_).request.partner.worker, Leg(d_).worker.name);
}

// It moves although its worker does not look as if it drained, yet.
TEST_F(RouterCoreContinuationTest, AHandOverCanComeBeforeTheHealth) {
  Cluster(1, 2);
  Stream(3);
  const std::string old = Leg(d_).worker.name;
  core_->OnLegFinished(d_, Kept(ErrorReason::kDraining, 102));
  TakeLastLegs();
  EXPECT_EQ(Leg(p_).worker.name, old);
  EXPECT_NE(Leg(d_).worker.name, old);
  Beat(Leg(p_).worker, WorkerHealth::kDraining);
  EXPECT_EQ(Leg(p_).cancels, 0) << "it drains, and still it is the best";
}

// One refusal tells about all: nobody else goes there to be refused.
TEST_F(RouterCoreContinuationTest, ARefusalSaysThatTheWorkerDrains) {
  Cluster(0, 2);
  Submit(Request(9));
  const std::string drained = Leg(d_).worker.name;
  core_->OnLegFinished(d_, MakeError(ErrorReason::kDraining, "no more"));
  const LegId again = legs_.Last(kD);
  EXPECT_NE(Leg(again).worker.name, drained);
  std::vector<FakeClient> clients(9);
  for (FakeClient& client : clients) {
    ASSERT_TRUE(core_->Submit(Request(9), &client).ok());
    EXPECT_NE(Leg(legs_.Last(kD)).worker.name, drained);
  }
  // A report that was under way changes nothing; a new life does.
  Beat({drained, Incarnation(1)}, WorkerHealth::kReady);
  FakeClient late;
  ASSERT_TRUE(core_->Submit(Request(9), &late).ok());
  EXPECT_NE(Leg(legs_.Last(kD)).worker.name, drained);
  Add(drained, false, true, 2);
  FakeClient later;
  ASSERT_TRUE(core_->Submit(Request(9), &later).ok());
  EXPECT_EQ(Leg(legs_.Last(kD)).worker.name, drained);
  for (LegId leg = again; leg <= legs_.Last(kD); ++leg) {
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
  }
}

TEST_F(RouterCoreContinuationTest, ADrainingDecodeTakesBackWhatNobodyElseCan) {
  Cluster(1, 1);
  Stream(3);
  Beat(Leg(d_).worker, WorkerHealth::kDraining);
  core_->OnLegFinished(d_, Kept(ErrorReason::kDraining, 102));
  TakeLastLegs();
  EXPECT_EQ(Leg(d_).worker.name, "d1");
  EXPECT_EQ(Leg(d_).request.partner.worker, "");
  core_->OnLegFrame(d_, FakeFrame(3, 1, FinishReason::kStop));
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2, 3));
}

TEST_F(RouterCoreContinuationTest, MovesDoNotCountAgainstTheRetryBudget) {
  options_.retry_floor = 1;
  options_.retry_share = 0;
  Cluster(0, 1);
  std::vector<FakeClient> clients(4);
  for (FakeClient& client : clients) {
    ASSERT_TRUE(core_->Submit(Request(9), &client).ok());
  }
  Add("d2", false, true);
  for (LegId leg = 1; leg <= 4; ++leg) {
    core_->OnLegFrame(leg, FakeFrame(0, 1));
  }
  for (LegId leg = 1; leg <= 4; ++leg) {
    core_->OnLegFinished(leg, Kept(ErrorReason::kDraining, 9));
  }
  EXPECT_EQ(legs_.legs.size(), 8u);
  for (LegId leg = 5; leg <= 8; ++leg) {
    core_->OnLegFrame(leg, FakeFrame(1, 1, FinishReason::kStop));
  }
  for (FakeClient& client : clients) EXPECT_TRUE(client.status.ok());
}

TEST_F(RouterCoreContinuationTest, WaitingLegsLeaveADrainingWorker) {
  Cluster(2, 2);
  Submit();
  const std::string old_p = Leg(p_).worker.name, old_d = Leg(d_).worker.name;
  core_->OnLegAccepted(d_);
  Beat(Leg(d_).worker, WorkerHealth::kDraining);
  EXPECT_EQ(legs_.legs.size(), 2u) << "it has begun with this one";
  Beat(Leg(p_).worker, WorkerHealth::kDraining);
  ASSERT_EQ(legs_.legs.size(), 4u);
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Leg(d_).cancels, 1);
  TakeLastLegs();
  EXPECT_NE(Leg(p_).worker.name, old_p);
  EXPECT_NE(Leg(d_).worker.name, old_d);
  // Nobody is moved to nowhere.
  Beat(Leg(d_).worker, WorkerHealth::kDraining);
  EXPECT_EQ(legs_.legs.size(), 4u);
  EXPECT_EQ(core_->workers().reservations(), 2);
}

TEST_F(RouterCoreContinuationTest, EachTokenBeginsTheCountOfAttemptsAnew) {
  options_.max_attempts = 2;
  Cluster(0, 3);
  Submit(Request(9));
  for (int token = 0; token < 5; ++token) {
    core_->OnLegFrame(legs_.Last(kD), FakeFrame(token, 1));
    core_->OnLegFinished(legs_.Last(kD), absl::UnavailableError("died"));
    ASSERT_FALSE(client_.ended);
  }
  core_->OnLegFinished(legs_.Last(kD), absl::UnavailableError("died"));
  EXPECT_FALSE(client_.ended);
  core_->OnLegFinished(legs_.Last(kD), absl::UnavailableError("died"));
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(probe_.outcomes[0].attempts, 7);
  EXPECT_EQ(probe_.outcomes[0].delivered_tokens, 5);
}

TEST_F(RouterCoreContinuationTest, AnswersThatHavePartedGoOnAtOneDecode) {
  Cluster(2, 2);
  GenerateRequest request = Request();
  request.n = 3;
  Submit(request);
  Accept();
  for (int s : {0, 1, 2}) core_->OnLegFrame(p_, Of(s, FakeFrame(0, 1)));
  core_->OnLegFinished(p_, absl::OkStatus());
  std::vector<int> next = {1, 1, 1};
  core_->OnLegFrame(d_, Of(1, FakeFrame(1, 1, FinishReason::kStop)));
  core_->OnLegFrame(d_, Of(2, FakeFrame(1, 2)));
  core_->OnWorkerLost(Leg(d_).worker, absl::UnavailableError("broke"));
  ASSERT_EQ(legs_.legs.size(), 3u);
  TakeLastLegs();
  const LegRequest& leg = Leg(d_).request;
  EXPECT_EQ(leg.partner.worker, "");
  ASSERT_EQ(leg.delivered.size(), 3u);
  EXPECT_EQ(leg.delivered[0].size(), 1u);
  EXPECT_EQ(leg.delivered[1].size(), 2u);
  EXPECT_EQ(leg.delivered[2].size(), 3u);
  EXPECT_EQ(leg.history().size(), 100u);
  std::vector<TokenFrame> frames;
  client_.on_frame = [&](const TokenFrame& f) { frames.push_back(f); };
  core_->OnLegFrame(d_, Of(1, FakeFrame(2, 0, FinishReason::kStop)));
  core_->OnLegFrame(d_, Of(0, FakeFrame(1, 1, FinishReason::kStop)));
  TokenFrame last = Of(2, FakeFrame(3, 2, FinishReason::kStop));
  last.usage = {100, 0, 5};
  core_->OnLegFrame(d_, last);
  EXPECT_TRUE(client_.status.ok()) << client_.status;
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].sample, 0);
  EXPECT_EQ(frames[1].sample, 2);
  EXPECT_EQ(frames[1].usage.completion_tokens, 9);
}

// Answers that come at the end are made again, and given once.
TEST_F(RouterCoreContinuationTest, DeferredAnswersAreMadeAgain) {
  Cluster(0, 2);
  GenerateRequest request = Request(9);
  request.best_of = 3;
  Submit(request);
  core_->OnLegFrame(d_, FakeFrame(0, 2));
  core_->OnLegFinished(d_, absl::UnavailableError("died"));
  TakeLastLegs();
  EXPECT_THAT(Leg(d_).request.delivered, IsEmpty());
  core_->OnLegFrame(d_, FakeFrame(0, 3));
  core_->OnLegFrame(d_, FakeFrame(3, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2, 3));
}

TEST_F(RouterCoreContinuationTest, ASilentDecodeAfterALostPrefillIsLeft) {
  Cluster(2, 2);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(p_, absl::UnavailableError("died"));
  EXPECT_EQ(legs_.legs.size(), 2u) << "decode may have the KV";
  Pass(options_.await_grace);
  EXPECT_EQ(Leg(d_).cancels, 1);
  ASSERT_EQ(legs_.legs.size(), 4u);
  TakeLastLegs();
  EXPECT_EQ(Leg(d_).request.delivered[0].size(), 1u);
  core_->OnLegFrame(p_, FakeFrame(1, 1));
  core_->OnLegFrame(d_, FakeFrame(2, 1, FinishReason::kStop));
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2));
}

TEST_F(RouterCoreContinuationTest, WhatAWorkerKeepsIsNoClientsBusiness) {
  options_.max_attempts = 1;
  Cluster(0, 1);
  Submit(Request(9));
  core_->OnLegFinished(d_, Kept(ErrorReason::kTransferFailed, 9));
  EXPECT_EQ(Reason(), ErrorReason::kTransferFailed);
  EXPECT_EQ(ErrorInfoOf(client_.status).kept_tokens, 0);
}

TEST_F(RouterCoreContinuationTest, TheDeadlineIsTheClients) {
  Cluster(0, 1);
  GenerateRequest request = Request(9);
  request.timeout = absl::Seconds(2);
  Submit(request);
  core_->OnLegFrame(d_, FakeFrame(0, 1));
  Pass(absl::Seconds(1));
  core_->OnLegFinished(d_, absl::UnavailableError("died"));
  Pass(options_.retry_pause);
  ASSERT_EQ(legs_.legs.size(), 2u);
  EXPECT_EQ(Leg(legs_.Last(kD)).request.request.timeout,
            absl::Seconds(1) - options_.retry_pause);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Reason(), ErrorReason::kDeadline);
}

TEST_F(RouterCoreContinuationTest, ARefusalByADrainingWorkerIsNoAttempt) {
  options_.max_attempts = 1;
  Cluster(0, 3);
  Submit(Request(9));
  for (int refusal = 0; refusal < 2; ++refusal) {
    core_->OnLegFinished(legs_.Last(kD),
                         MakeError(ErrorReason::kDraining, "no more"));
    ASSERT_FALSE(client_.ended) << client_.status;
    Pass(4 * options_.retry_pause);
  }
  ASSERT_EQ(legs_.legs.size(), 3u);
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

// Full workers do not end what has begun; nor are they asked without a pause.
TEST_F(RouterCoreContinuationTest, WhatHasGivenTokensWaitsForAPlace) {
  options_.max_attempts = 2;
  Cluster(0, 2);
  GenerateRequest request = Request(9);
  request.timeout = absl::Minutes(1);
  Submit(request);
  core_->OnLegFrame(d_, FakeFrame(0, 1));
  core_->OnLegFinished(d_, absl::UnavailableError("died"));
  core_->OnLegFinished(2, MakeError(ErrorReason::kQueueFull, "full"));
  ASSERT_EQ(legs_.legs.size(), 3u) << "the other one may have room";
  core_->OnLegFinished(3, MakeError(ErrorReason::kQueueFull, "full"));
  ASSERT_EQ(legs_.legs.size(), 3u);
  for (LegId leg = 4; leg < 10; ++leg) {
    Pass(64 * options_.retry_pause);
    for (const char* worker : {"d1", "d2"}) {
      Beat({worker, Incarnation(1)}, WorkerHealth::kReady);
    }
    ASSERT_EQ(legs_.Last(kD), leg);
    core_->OnLegFinished(leg, MakeError(ErrorReason::kQueueFull, "full"));
    ASSERT_FALSE(client_.ended) << client_.status;
  }
  Pass(absl::Minutes(1));
  EXPECT_EQ(Reason(), ErrorReason::kDeadline);
}

// The wait for a silent decode was the old attempt's.
TEST_F(RouterCoreContinuationTest, AMovedRequestDoesNotInheritAWait) {
  Cluster(2, 2);
  Submit();
  core_->OnLegFinished(d_, absl::OkStatus());
  Beat(Leg(p_).worker, WorkerHealth::kDraining);
  ASSERT_EQ(legs_.legs.size(), 4u);
  TakeLastLegs();
  Pass(options_.await_grace);
  EXPECT_EQ(Leg(d_).cancels, 0);
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok()) << client_.status;
}

// Decode goes on from every sample's first token, so it cannot without them.
TEST_F(RouterCoreContinuationTest, APrefillThatLeavesASampleOutIsReplaced) {
  Cluster(2, 2);
  GenerateRequest request = Request();
  request.n = 2;
  Submit(request);
  Accept();
  core_->OnLegFrame(p_, Of(0, FakeFrame(0, 1)));
  core_->OnLegFrame(d_, Of(0, FakeFrame(1, 1)));
  core_->OnLegFinished(p_, absl::UnavailableError("died"));
  Pass(options_.settle_grace);
  EXPECT_EQ(Leg(d_).cancels, 1);
  ASSERT_EQ(legs_.legs.size(), 3u);
  TakeLastLegs();
  core_->OnLegFrame(d_, Of(0, FakeFrame(2, 1, FinishReason::kStop)));
  core_->OnLegFrame(d_, Of(1, FakeFrame(0, 1, FinishReason::kStop)));
  EXPECT_TRUE(client_.status.ok()) << client_.status;
}

// A token beyond what was asked for could be nobody's.
TEST_F(RouterCoreContinuationTest, MoreThanWasAskedForIsAnError) {
  Cluster(0, 1);
  GenerateRequest request = Request(9);
  request.stop.max_tokens = 2;
  Submit(request);
  core_->OnLegFrame(d_, FakeFrame(0, 3));
  EXPECT_EQ(Reason(), ErrorReason::kInternal);
  EXPECT_THAT(client_.ids, IsEmpty());
}

// A prompt that is only scored is drawn from once all the same.
TEST_F(RouterCoreContinuationTest, WhoAsksForNoTokenGetsTheOneThatEndsIt) {
  Cluster(0, 1);
  GenerateRequest request = Request(9);
  request.stop.max_tokens = 0;
  Submit(request);
  core_->OnLegFrame(d_, FakeFrame(0, 1, FinishReason::kLength));
  EXPECT_TRUE(client_.ended);
  EXPECT_TRUE(client_.status.ok()) << client_.status;
  EXPECT_EQ(client_.ids.size(), 1u);
}

}  // namespace
}  // namespace penstock
