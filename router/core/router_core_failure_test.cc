// What the router core makes of legs and workers that fail.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

using RouterCoreFailureTest = RouterCoreTest;

TEST_F(RouterCoreFailureTest, LegsThatEndWithoutALastTokenAreAnError) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(d_, absl::OkStatus());
  EXPECT_FALSE(client_.ended);
  core_->OnLegFinished(p_, absl::OkStatus());
  EXPECT_EQ(Reason(), ErrorReason::kInternal);
}

TEST_F(RouterCoreFailureTest, DecodeThatEndedEarlyIsNotWaitedForForEver) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFinished(d_, absl::OkStatus());
  Pass(options_.await_grace);
  // Nothing failed, so another attempt may do better.
  EXPECT_FALSE(client_.ended);
  EXPECT_THAT(probe_.retried, ElementsAre(ErrorReason::kTransferFailed));
  EXPECT_EQ(Leg(p_).cancels, 1);
}

TEST_F(RouterCoreFailureTest, ARefusalCancelsTheOtherLegAtOnce) {
  Cluster(1, 1);
  Submit();
  core_->OnLegFinished(d_, MakeError(ErrorReason::kKvTooSmall, "too small"));
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Reason(), ErrorReason::kKvTooSmall);
  EXPECT_THAT(probe_.retried, IsEmpty());
}

// Prefill only knows that decode gave up; decode knows why.
TEST_F(RouterCoreFailureTest, TheTellingReasonWins) {
  Cluster(2, 2);
  Submit();
  core_->OnLegFinished(p_, MakeError(ErrorReason::kTransferFailed, "gave up"));
  EXPECT_EQ(Leg(d_).cancels, 0);
  EXPECT_FALSE(client_.ended);
  core_->OnLegFinished(d_, MakeError(ErrorReason::kKvTooSmall, "too small"));
  EXPECT_EQ(Reason(), ErrorReason::kKvTooSmall);
}

// One leg's failure ends the other within 100 ms, and the pair is tried again.
TEST_F(RouterCoreFailureTest, TheOtherLegIsWaitedForBrieflyAndThenCancelled) {
  ASSERT_LT(options_.settle_grace, absl::Milliseconds(100));
  Cluster(2, 2);
  Submit();
  Accept();
  core_->OnLegFinished(d_, MakeError(ErrorReason::kTransferFailed, "broken"));
  EXPECT_EQ(Leg(p_).cancels, 0);
  Pass(options_.settle_grace);
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_FALSE(client_.ended);
  ASSERT_EQ(legs_.legs.size(), 4u);
  EXPECT_NE(Leg(legs_.Last(kD)).worker, Leg(d_).worker);
  EXPECT_NE(Leg(legs_.Last(kP)).worker, Leg(p_).worker);
}

TEST_F(RouterCoreFailureTest, RetriesElsewhereBeforeTheFirstToken) {
  Cluster(2, 2);
  Submit();
  Accept();
  LegId first_p = p_, first_d = d_;
  core_->OnLegFinished(d_, MakeError(ErrorReason::kQueueFull, "full"));
  Pass(options_.settle_grace);
  EXPECT_EQ(Leg(first_p).cancels, 1);
  ASSERT_EQ(legs_.legs.size(), 4u);
  TakeLastLegs();
  EXPECT_NE(Leg(d_).worker, Leg(first_d).worker);
  EXPECT_EQ(Leg(d_).request.attempt, AttemptId(2));
  EXPECT_TRUE(Leg(d_).request.delivered.empty());
  EXPECT_THAT(probe_.retried, ElementsAre(ErrorReason::kQueueFull));
  // The first attempt's leg is absorbed.
  core_->OnLegFrame(first_p, FakeFrame(0, 1));
  core_->OnLegFinished(first_p, absl::CancelledError("late"));
  EXPECT_THAT(client_.ids, IsEmpty());
  Accept();
  EXPECT_EQ(client_.admissions, 1);
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFrame(d_, FakeFrame(1, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
  EXPECT_EQ(probe_.outcomes[0].attempts, 2);
}

// What the client has of the prompt is not given again; decode's answers, given
// at the end, were not given yet.
TEST_F(RouterCoreFailureTest, ARetryGoesOnWithThePromptsLogprobs) {
  Cluster(2, 2);
  GenerateRequest request = Request(100);
  request.prompt_logprobs = 0;
  request.best_of = 2;
  Submit(request);
  Accept();
  auto part = [](int first, int end) {
    TokenFrame frame;
    frame.prompt.first_index = first;
    frame.prompt.tokens.resize(end - first);
    return frame;
  };
  std::vector<std::pair<int, size_t>> parts;
  client_.on_prompt = [&](const PromptLogprobs& prompt) {
    parts.emplace_back(prompt.first_index, prompt.tokens.size());
  };
  core_->OnLegFrame(p_, part(1, 60));
  core_->OnWorkerLost(Leg(p_).worker, absl::UnavailableError("broke"));
  core_->OnLegFinished(d_, MakeError(ErrorReason::kWorkerLost, "alone"));
  EXPECT_FALSE(client_.ended);
  TakeLastLegs();
  Accept();
  core_->OnLegFrame(p_, part(1, 80));
  core_->OnLegFrame(p_, part(80, 100));
  core_->OnLegFinished(p_, absl::OkStatus());
  core_->OnLegFrame(d_, FakeFrame(0, 3, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok()) << client_.status;
  EXPECT_THAT(parts, ElementsAre(std::pair(1, 59u), std::pair(60, 20u),
                                 std::pair(80, 20u)));
}

TEST_F(RouterCoreFailureTest, AttemptsAreBounded) {
  options_.max_attempts = 3;
  Cluster(0, 5);
  Submit();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_FALSE(client_.ended);
    core_->OnLegFinished(legs_.Last(kD), absl::UnavailableError("down"));
  }
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(legs_.legs.size(), 3u);
}

TEST_F(RouterCoreFailureTest, WithoutAnotherWorkerTheSameIsTriedAfterAPause) {
  Cluster(0, 1);
  Submit();
  core_->OnLegFinished(d_, MakeError(ErrorReason::kQueueFull, "full"));
  EXPECT_EQ(legs_.legs.size(), 1u);
  Beat({"d1", Incarnation(1)}, WorkerHealth::kReady);
  EXPECT_EQ(legs_.legs.size(), 1u) << "nothing shortens the pause";
  // From half of it to all, doubled for the one attempt that gave nothing.
  Pass(0.99 * options_.retry_pause);
  EXPECT_EQ(legs_.legs.size(), 1u);
  Pass(1.02 * options_.retry_pause);
  ASSERT_EQ(legs_.legs.size(), 2u);
  EXPECT_EQ(core_->running(), 1);
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

// The one that failed is the last to be asked again, pause or not.
TEST_F(RouterCoreFailureTest, AfterAPauseTheCulpritIsStillAvoided) {
  options_.retry_floor = 1;
  options_.retry_share = 0;
  Cluster(0, 2);
  FakeClient other;
  ASSERT_TRUE(core_->Submit(Request(9), &other).ok());
  const std::string first = Leg(legs_.Last(kD)).worker.name;
  Submit(Request(5000));
  const std::string culprit = Leg(d_).worker.name;
  ASSERT_NE(culprit, first);
  core_->OnLegFinished(1, absl::UnavailableError("broke"));
  ASSERT_EQ(legs_.legs.size(), 3u);  // it has all of the budget
  core_->OnLegFinished(d_, absl::UnavailableError("broke"));
  ASSERT_EQ(legs_.legs.size(), 3u);
  // Now the culprit is less busy than the other.
  std::vector<FakeClient> busy(3);
  for (FakeClient& client : busy) {
    ASSERT_TRUE(core_->Submit(Request(9), &client).ok());
  }
  Pass(2 * options_.retry_pause);
  core_->OnLegFrame(3, FakeFrame(0, 1));
  EXPECT_EQ(Leg(legs_.Last(kD)).request.request.prompt.size(), 5000u);
  EXPECT_EQ(Leg(legs_.Last(kD)).worker.name, first);
  for (LegId leg = 3; leg <= legs_.Last(kD); ++leg) {
    core_->OnLegFrame(leg, FakeFrame(leg == 3, 1, FinishReason::kStop));
  }
}

// Nobody knows which of the pair was at fault: decode alone is left to try.
TEST_F(RouterCoreFailureTest, ABrokenPairFallsBackToDecodeAlone) {
  Cluster(1, 1);
  Submit();
  core_->OnLegFinished(p_, MakeError(ErrorReason::kTransferFailed, "broken"));
  core_->OnLegFinished(d_, absl::CancelledError("cancelled"));
  ASSERT_EQ(legs_.legs.size(), 3u);
  EXPECT_EQ(Leg(legs_.Last(kD)).request.partner.worker, "");
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

// Of an outage only so many come back at a time; none is lost.
TEST_F(RouterCoreFailureTest, RetriesHaveABudget) {
  options_.retry_floor = 2;
  options_.retry_share = 0;
  Cluster(0, 2);
  std::vector<std::unique_ptr<FakeClient>> clients;
  std::vector<LegId> legs;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<FakeClient>());
    ASSERT_TRUE(core_->Submit(Request(9), clients.back().get()).ok());
    legs.push_back(legs_.Last(kD));
  }
  for (LegId leg : legs) {
    core_->OnLegFinished(leg, absl::UnavailableError("outage"));
  }
  EXPECT_EQ(probe_.retried.size(), 2u);
  EXPECT_EQ(core_->running(), 6);
  Pass(absl::Seconds(1));
  EXPECT_EQ(probe_.retried.size(), 2u);
  EXPECT_TRUE(core_->CheckAccounting().ok()) << core_->CheckAccounting();
  // One that gives something makes room for one more, whether or not it ends.
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1));
  EXPECT_EQ(probe_.retried.size(), 3u);
  for (LegId leg = legs.back() + 1; leg <= legs_.Last(kD); ++leg) {
    core_->OnLegFrame(leg, FakeFrame(0, 2, FinishReason::kStop));
  }
  EXPECT_EQ(probe_.retried.size(), 6u);
  for (const auto& client : clients) {
    EXPECT_TRUE(client->status.ok()) << client->status;
    EXPECT_THAT(client->ids, ElementsAre(0, 1));
  }
}

// Otherwise all that fail would take turns, and pauses would save nothing.
TEST_F(RouterCoreFailureTest, WhoPausesCountsAgainstTheBudget) {
  options_.retry_floor = 1;
  options_.retry_share = 0;
  Cluster(0, 1);
  std::vector<FakeClient> clients(2);
  for (FakeClient& client : clients) {
    ASSERT_TRUE(core_->Submit(Request(9), &client).ok());
  }
  // Nobody else is there: the first pauses, and the second waits for it.
  core_->OnLegFinished(1, absl::UnavailableError("outage"));
  core_->OnLegFinished(2, absl::UnavailableError("outage"));
  Pass(2 * options_.retry_pause);
  ASSERT_EQ(legs_.legs.size(), 3u);
  const RequestId first = Leg(3).request.request.id;
  EXPECT_EQ(first, Leg(1).request.request.id);
  core_->OnLegFinished(3, absl::UnavailableError("outage"));
  Pass(options_.retry_pause);
  EXPECT_EQ(legs_.legs.size(), 3u) << "the second pause is twice as long";
  Pass(3 * options_.retry_pause);
  ASSERT_EQ(legs_.legs.size(), 4u);
  EXPECT_EQ(Leg(4).request.request.id, first);
  // When it gives up, the other's turn comes.
  core_->OnLegFinished(4, absl::UnavailableError("outage"));
  EXPECT_TRUE(clients[0].ended);
  ASSERT_EQ(legs_.legs.size(), 5u);
  core_->OnLegFrame(5, FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(clients[1].status.ok());
}

TEST_F(RouterCoreFailureTest, PrefillLostAfterItsTokenLetsDecodeGoOn) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnWorkerLost({"p1", Incarnation(1)}, absl::UnavailableError("broke"));
  EXPECT_FALSE(client_.ended);
  core_->OnLegFrame(d_, FakeFrame(1, 1));
  Pass(options_.await_grace);  // decode has shown that it has the KV
  EXPECT_FALSE(client_.ended);
  core_->OnLegFrame(d_, FakeFrame(2, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

TEST_F(RouterCoreFailureTest, PrefillThatDiesBeforeTheTransferIsReplaced) {
  Cluster(2, 1);
  Submit();
  Accept();
  std::string first = Leg(p_).worker.name;
  LegId first_d = d_;
  core_->OnWorkerLost(Leg(p_).worker, absl::UnavailableError("stream broke"));
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Leg(first_d).cancels, 0) << "it may say what it keeps";
  Pass(options_.settle_grace);
  EXPECT_EQ(Leg(first_d).cancels, 1);
  EXPECT_NE(legs_.Last(kP), p_);
  EXPECT_NE(Leg(legs_.Last(kP)).worker.name, first);
  EXPECT_EQ(core_->workers().reservations(), 2);
  core_->Cancel(Leg(first_d).request.request.id);
  EXPECT_EQ(core_->workers().reservations(), 0);
}

// Nothing of the old life survives, and what ran there goes on.
TEST_F(RouterCoreFailureTest, ANewLifeOfAWorkerTakesOverFromTheOld) {
  Cluster(0, 1);
  Submit();
  LegId old = d_;
  core_->OnLegFrame(old, FakeFrame(0, 2));
  Add("d1", false, true, 2);
  EXPECT_EQ(Leg(old).cancels, 1);
  EXPECT_FALSE(client_.ended);
  Pass(2 * options_.retry_pause);
  TakeLastLegs();
  ASSERT_NE(d_, old);
  EXPECT_EQ(Leg(d_).request.worker_incarnation, Incarnation(2));
  EXPECT_EQ(Leg(d_).request.delivered[0].size(), 2u);
  EXPECT_EQ(core_->workers().reservations(), 1);
  // What the old life did and said late means nothing to the new one.
  core_->OnLegFrame(old, FakeFrame(2, 1));
  core_->OnLegFinished(old, absl::OkStatus());
  core_->OnWorkerLost({"d1", Incarnation(1)}, absl::UnavailableError("late"));
  EXPECT_FALSE(client_.ended);
  EXPECT_THAT(client_.ids, ElementsAre(0, 1));
  core_->OnLegFrame(d_, FakeFrame(2, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok()) << client_.status;
}

TEST_F(RouterCoreFailureTest, SilentWorkersLoseTheirRequests) {
  Cluster(0, 1);
  Submit();
  Pass(options_.workers.heartbeat_interval * options_.workers.suspect_after);
  EXPECT_FALSE(client_.ended);
  Pass(options_.workers.heartbeat_interval * options_.workers.lost_after);
  EXPECT_FALSE(core_->CanServe());
  EXPECT_FALSE(client_.ended) << "somebody may come";
  Pass(options_.worker_patience);
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
}

// Nobody knows whether it is gone; another can begin at once.
TEST_F(RouterCoreFailureTest, WaitingLegsLeaveASuspectWorker) {
  Cluster(0, 2);
  Submit(Request(9));
  const LegId waits = d_;
  const WorkerKey silent = Leg(d_).worker;
  const std::string other = silent.name == "d1" ? "d2" : "d1";
  const absl::Duration interval = options_.workers.heartbeat_interval;
  for (int i = 0; i < options_.workers.suspect_after; ++i) {
    EXPECT_EQ(legs_.legs.size(), 1u);
    Beat({other, Incarnation(1)}, WorkerHealth::kReady);
    Pass(interval);
  }
  ASSERT_EQ(legs_.legs.size(), 2u);
  EXPECT_EQ(Leg(waits).cancels, 1);
  TakeLastLegs();
  EXPECT_EQ(Leg(d_).worker.name, other);
  EXPECT_THAT(probe_.retried, ElementsAre(ErrorReason::kWorkerLost));
  // When both are silent there is nowhere to go.
  Pass(options_.workers.suspect_after * interval);
  EXPECT_EQ(legs_.legs.size(), 2u);
  core_->OnLegFrame(d_, FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

// A worker that only is slow must not drag the others along: what leaves it is
// within the retry budget.
TEST_F(RouterCoreFailureTest, NoMoreThanTheBudgetLeavesASuspectWorker) {
  options_.retry_floor = 2;
  options_.retry_share = 0;
  Cluster(0, 1);
  std::vector<FakeClient> clients(5);
  for (FakeClient& client : clients) {
    ASSERT_TRUE(core_->Submit(Request(9), &client).ok());
  }
  Add("d2", false, true);
  const absl::Duration interval = options_.workers.heartbeat_interval;
  for (int i = 0; i < options_.workers.suspect_after; ++i) {
    Beat({"d2", Incarnation(1)}, WorkerHealth::kReady);
    Pass(interval);
  }
  EXPECT_EQ(legs_.legs.size(), 7u);
  for (LegId leg = 1; leg <= 7; ++leg) {
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
  }
  for (FakeClient& client : clients) EXPECT_TRUE(client.status.ok());
}

// Telemetry that fails stops nothing: dispatch goes on by this router's counts.
TEST_F(RouterCoreFailureTest, WithoutAnyLoadReportRequestsAreServed) {
  Cluster(0, 2);
  std::vector<std::unique_ptr<FakeClient>> clients;
  std::map<std::string, int> legs;
  for (int second = 0; second < 60; ++second) {
    Pass(absl::Seconds(1));
    core_->OnAlive({"d1", Incarnation(1)});
    core_->OnAlive({"d2", Incarnation(1)});
    clients.push_back(std::make_unique<FakeClient>());
    ASSERT_TRUE(core_->Submit(Request(9), clients.back().get()).ok());
    ++legs[Leg(legs_.Last(kD)).worker.name];
  }
  // The load that is reserved keeps them even.
  EXPECT_EQ(legs["d1"], 30);
  EXPECT_EQ(legs["d2"], 30);
  for (const auto& [id, leg] : legs_.legs) {
    core_->OnLegFrame(id, FakeFrame(0, 1, FinishReason::kStop));
  }
}

TEST_F(RouterCoreFailureTest, RequestsWaitForAWorkerThatWasThereAMomentAgo) {
  Cluster(0, 1);
  core_->OnWorkerLost({"d1", Incarnation(1)}, absl::UnavailableError("broke"));
  Submit();
  EXPECT_EQ(core_->queued(), 1);
  Pass(options_.worker_patience / 2);
  Add("d1", false, true, 2);
  EXPECT_EQ(core_->queued(), 0);
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

TEST_F(RouterCoreFailureTest, RequestsDoNotWaitForAWorkerThatStaysAway) {
  Cluster(0, 1);
  core_->OnWorkerLost({"d1", Incarnation(1)}, absl::UnavailableError("broke"));
  Submit();
  Pass(options_.worker_patience);
  EXPECT_EQ(Reason(), ErrorReason::kNoWorkers);
  FakeClient other;
  EXPECT_EQ(ErrorInfoOf(core_->Submit(Request(), &other).status()).reason,
            ErrorReason::kNoWorkers);
}

}  // namespace
}  // namespace penstock
