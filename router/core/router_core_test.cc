#include "router/core/router_core.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/testing/router_core_fixture.h"
#include "router/core/router_fakes.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

TEST_F(RouterCoreTest, OptionsAreChecked) {
  const RouterCore::Ports ports = {&clock_,  &timers_, &random_, &hasher_,
                                   &policy_, &legs_,   &probe_};
  using Options = RouterCore::Options;
  const absl::Duration before = -absl::Nanoseconds(1);
  const std::pair<const char*, std::function<void(Options&)>> kWrong[] = {
      {"max_running", [](Options& o) { o.max_running = 0; }},
      {"max_attempts", [](Options& o) { o.max_attempts = 0; }},
      {"retry_floor", [](Options& o) { o.retry_floor = 0; }},
      {"max_timeout", [](Options& o) { o.max_timeout = {}; }},
      {"max_timeout",
       [](Options& o) { o.max_timeout = absl::InfiniteDuration(); }},
      {"heartbeat_interval",
       [](Options& o) { o.workers.heartbeat_interval = {}; }},
      {"suspect_after", [](Options& o) { o.workers.suspect_after = 0; }},
      {"lost_after",
       [](Options& o) { o.workers.lost_after = o.workers.suspect_after; }},
      {"stalled_after",
       [](Options& o) {
         o.workers.stalled_after =
             o.workers.suspect_after * o.workers.heartbeat_interval;
       }},
      {"content", [](Options& o) { o.workers.content = ContentId(); }},
      {"max_queued", [](Options& o) { o.max_queued = -1; }},
      {"retry_share", [](Options& o) { o.retry_share = -0.1; }},
      {"retry_share", [](Options& o) { o.retry_share = std::nan(""); }},
      {"retry_pause", [&](Options& o) { o.retry_pause = before; }},
      {"worker_patience", [&](Options& o) { o.worker_patience = before; }},
  };
  for (const auto& [name, spoil] : kWrong) {
    Options options = options_;
    spoil(options);
    const absl::Status status = RouterCore::Create(options, ports).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  // The least that is allowed.
  options_.max_running = options_.max_attempts = options_.retry_floor = 1;
  options_.max_queued = 0;
  options_.retry_share = 0;
  options_.retry_pause = options_.worker_patience = absl::ZeroDuration();
  EXPECT_TRUE(RouterCore::Create(options_, ports).ok());
}

TEST_F(RouterCoreTest, RelaysAHandoff) {
  Cluster(1, 1);
  GenerateRequest request = Request();
  request.timeout = absl::Seconds(30);
  RequestId id = Submit(request);
  ASSERT_EQ(legs_.legs.size(), 2u);
  EXPECT_EQ(Leg(p_).worker.name, "p1");
  EXPECT_EQ(Leg(p_).request.partner.worker, "d1");
  EXPECT_EQ(Leg(p_).request.partner.control, "d1:1");
  EXPECT_EQ(Leg(d_).request.partner.worker, "p1");
  EXPECT_EQ(Leg(d_).request.request.id, id);
  EXPECT_EQ(Leg(d_).request.transfer(), Leg(p_).request.transfer());
  EXPECT_EQ(Leg(d_).request.worker_incarnation, Incarnation(1));
  EXPECT_EQ(Leg(d_).request.request.timeout, absl::Seconds(30));
  EXPECT_EQ(core_->workers().reservations(), 2);

  core_->OnLegAccepted(d_);
  EXPECT_EQ(client_.admissions, 0);
  core_->OnLegAccepted(p_);
  EXPECT_EQ(client_.admissions, 1);
  EXPECT_EQ(client_.placement.prefill, "p1");
  EXPECT_EQ(client_.placement.decode, "d1");
  clock_.Advance(absl::Milliseconds(40));
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(p_, absl::OkStatus());
  EXPECT_EQ(core_->workers().reservations(), 1);  // prefill has done its part
  clock_.Advance(absl::Milliseconds(10));
  core_->OnLegFrame(d_, FakeFrame(1, 2));
  TokenFrame last = FakeFrame(3, 1, FinishReason::kLength);
  last.usage = {100, 16, 4};
  last.transfer.transport = "tcp";
  last.transfer.bytes_moved = 12345;
  last.timings.prefill = absl::Milliseconds(9);
  core_->OnLegFrame(d_, last);
  EXPECT_TRUE(client_.ended);
  EXPECT_TRUE(client_.status.ok());
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(client_.last.usage.cached_tokens, 16);
  EXPECT_EQ(client_.last.transfer.bytes_moved, 12345u);
  EXPECT_EQ(client_.last.timings.prefill, absl::Milliseconds(9));
  EXPECT_FALSE(core_->idle());  // decode's leg has not ended yet
  core_->OnLegFinished(d_, absl::OkStatus());
  EXPECT_TRUE(core_->idle());
  for (const auto& [leg, info] : legs_.legs) EXPECT_EQ(info.cancels, 0);

  EXPECT_THAT(probe_.first_tokens, ElementsAre(absl::Milliseconds(40)));
  EXPECT_THAT(probe_.gaps,
              ElementsAre(absl::Milliseconds(10), absl::ZeroDuration()));
  EXPECT_EQ(probe_.later_tokens, 3);
  ASSERT_EQ(probe_.outcomes.size(), 1u);
  EXPECT_EQ(probe_.outcomes[0].finish, FinishReason::kLength);
  EXPECT_EQ(probe_.outcomes[0].usage.completion_tokens, 4);
  EXPECT_EQ(probe_.outcomes[0].delivered_tokens, 4);
  EXPECT_EQ(probe_.outcomes[0].elapsed, absl::Milliseconds(50));

  // What came of the placement: nothing was believed cached, 16 tokens were.
  ASSERT_EQ(probe_.judged.size(), 1u);
  const DecisionOutcome& judged = probe_.judged[0];
  EXPECT_EQ(judged.request, id);
  EXPECT_EQ(judged.prefill, "p1");
  EXPECT_EQ(judged.decode, "d1");
  EXPECT_EQ(judged.predicted_hit_tokens, 0);
  EXPECT_EQ(judged.hit_tokens, 16);
  EXPECT_EQ(judged.first_token, absl::Milliseconds(40));
  EXPECT_EQ(absl::ToInt64Microseconds(judged.predicted_first_token),
            absl::ToInt64Microseconds(CostModel::Create({})->Prefill(100, 0)));
  ASSERT_NE(judged.record, nullptr) << "the first one is recorded";
  EXPECT_EQ(judged.record->policy, "prefix_aware");
  EXPECT_EQ(judged.record->decode.chosen.worker, "d1");
  EXPECT_EQ(judged.record->Regret(), absl::ZeroDuration());
}

TEST_F(RouterCoreTest, ShortPromptsHaveOneLeg) {
  Cluster(1, 1);
  Submit(Request(15));
  ASSERT_EQ(legs_.legs.size(), 1u);
  EXPECT_EQ(Leg(d_).request.partner.worker, "");
  core_->OnLegAccepted(d_);
  EXPECT_EQ(client_.placement.prefill, "");
  core_->OnLegFrame(d_, FakeFrame(0, 2, FinishReason::kStop));
  EXPECT_TRUE(client_.ended);
  EXPECT_THAT(client_.ids, ElementsAre(0, 1));
}

// What a worker said it caches for exactly these tokens is found again.
TEST_F(RouterCoreTest, HashesPromptsAsWorkersDo) {
  Cluster(0, 2);
  GenerateRequest request = Request(100);
  request.tenant = "t";
  request.cache_salt = "s";
  std::vector<BlockHash> chain =
      hasher_.Chain(hasher_.Root({ContentId(7), "", "t", "s"}), request.prompt);
  CacheEvent event{1, BlocksStored{BlockHash(), chain}};
  EXPECT_EQ(core_->OnCacheEvents({"d2", Incarnation(1)}, {event}).resend_from,
            std::nullopt);
  Submit(request);
  EXPECT_EQ(Leg(d_).worker.name, "d2");
  EXPECT_EQ(probe_.placements[0].hit_tokens, 96);
  core_->OnLegFinished(d_, absl::InternalError("x"));
}

// Its log-probabilities come from rows that are computed.
TEST_F(RouterCoreTest, APromptToScoreFindsNothingCached) {
  Cluster(0, 1);
  GenerateRequest request = Request(100);
  const std::vector<BlockHash> chain =
      hasher_.Chain(hasher_.Root({ContentId(7), "", "", ""}), request.prompt);
  core_->OnCacheEvents({"d1", Incarnation(1)},
                       {{1, BlocksStored{BlockHash(), chain}}});
  for (int logprobs : {0, 3, -1}) {
    request.prompt_logprobs = logprobs;
    FakeClient client;
    ASSERT_TRUE(core_->Submit(request, &client).ok());
    EXPECT_EQ(probe_.placements.back().hit_tokens, logprobs < 0 ? 96 : 0);
    core_->OnLegFinished(legs_.Last(kD), absl::InternalError("x"));
    EXPECT_TRUE(client.ended);
  }
}

TEST_F(RouterCoreTest, TokensWaitForAdmission) {
  Cluster(1, 1);
  Submit();
  core_->OnLegFrame(p_, FakeFrame(0, 1));  // overtook decode's acceptance
  EXPECT_THAT(client_.ids, IsEmpty());
  core_->OnLegAccepted(d_);
  EXPECT_THAT(client_.ids, ElementsAre(0));
  core_->OnLegFrame(d_, FakeFrame(1, 1, FinishReason::kStop));
}

TEST_F(RouterCoreTest, DecodeMayOvertakePrefillsToken) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(d_, FakeFrame(1, 3, FinishReason::kStop));
  core_->OnLegFinished(d_, absl::OkStatus());
  EXPECT_THAT(client_.ids, IsEmpty());
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  EXPECT_THAT(client_.ids, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(client_.status.ok());
}

TEST_F(RouterCoreTest, AGapEndsTheRequestOnce) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFrame(d_, FakeFrame(2, 1));
  EXPECT_EQ(Reason(), ErrorReason::kInternal);
  EXPECT_EQ(Leg(d_).cancels, 1);
  EXPECT_EQ(Leg(p_).cancels, 1);
  core_->OnLegFrame(d_, FakeFrame(3, 1));
  core_->OnLegFinished(d_, absl::CancelledError("late"));
  EXPECT_THAT(probe_.retried, IsEmpty());
}

TEST_F(RouterCoreTest, TheFirstTokenMayBeTheLast) {
  Cluster(1, 1);
  Submit();
  Accept();
  // Decode hears of it first, and ends well without a token.
  core_->OnLegFinished(d_, absl::OkStatus());
  EXPECT_FALSE(client_.ended);
  core_->OnLegFrame(p_, FakeFrame(0, 1, FinishReason::kLength));
  EXPECT_TRUE(client_.ended);
  EXPECT_TRUE(client_.status.ok());
  EXPECT_THAT(client_.ids, ElementsAre(0));
}

TEST_F(RouterCoreTest, TheDeadlineReachesClientAndBothLegs) {
  Cluster(1, 1);
  GenerateRequest request = Request();
  request.timeout = absl::Seconds(3);
  Submit(request);
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  Pass(absl::Milliseconds(2999));
  EXPECT_FALSE(client_.ended);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(Reason(), ErrorReason::kDeadline);
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Leg(d_).cancels, 1);
}

TEST_F(RouterCoreTest, TheServerCapsTheDeadline) {
  options_.max_timeout = absl::Seconds(5);
  Cluster(0, 1);
  Submit();
  EXPECT_EQ(Leg(d_).request.request.timeout, absl::Seconds(5));
  for (int i = 0; i < 5; ++i) {
    Beat({"d1", Incarnation(1)}, WorkerHealth::kReady);
    Pass(absl::Seconds(1));
  }
  EXPECT_EQ(Reason(), ErrorReason::kDeadline);
}

// The client drops while prefill computes and says nothing.
TEST_F(RouterCoreTest, CancelReachesBothLegsWithinTheCall) {
  Cluster(1, 1);
  RequestId id = Submit();
  core_->Cancel(id);
  EXPECT_EQ(Reason(), ErrorReason::kCancelled);
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Leg(d_).cancels, 1);
  EXPECT_EQ(core_->workers().reservations(), 0);
  core_->Cancel(id);
  core_->OnLegAccepted(p_);
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  EXPECT_EQ(client_.admissions, 0);
}

TEST_F(RouterCoreTest, WithoutWorkersRequestsAreRefused) {
  options_.worker_patience = absl::ZeroDuration();
  Cluster(1, 0);
  EXPECT_FALSE(core_->CanServe());
  EXPECT_EQ(ErrorInfoOf(core_->Submit(Request(), &client_).status()).reason,
            ErrorReason::kNoWorkers);
  Add("d1", false, true);
  EXPECT_TRUE(core_->CanServe());
  Beat({"d1", Incarnation(1)}, WorkerHealth::kDraining);
  EXPECT_FALSE(core_->CanServe());
  EXPECT_FALSE(core_->Submit(Request(), &client_).ok());
  EXPECT_FALSE(client_.ended);
}

TEST_F(RouterCoreTest, QueuedRequestsEndWhenTheLastWorkerIsLost) {
  options_.max_running = 1;
  Cluster(0, 1);
  Submit(Request(9));
  FakeClient waiting;
  ASSERT_TRUE(core_->Submit(Request(9), &waiting).ok());
  core_->OnWorkerLost({"d1", Incarnation(1)}, absl::UnavailableError("x"));
  EXPECT_FALSE(client_.ended);
  Pass(options_.worker_patience);
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(ErrorInfoOf(waiting.status).reason, ErrorReason::kNoWorkers);
}

TEST_F(RouterCoreTest, DrainFinishesWhatWasTakenAndTakesNoMore) {
  options_.max_running = 1;
  Cluster(0, 1);
  Submit(Request(9));
  FakeClient waiting, refused;
  ASSERT_TRUE(core_->Submit(Request(9), &waiting).ok());
  int idle = 0;
  core_->Drain([&] { ++idle; });
  auto more = core_->Submit(Request(9), &refused);
  EXPECT_EQ(ErrorInfoOf(more.status()).reason, ErrorReason::kDraining);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(idle, 0);
    LegId leg = legs_.Last(kD);
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
    EXPECT_EQ(idle, 0);
    core_->OnLegFinished(leg, absl::OkStatus());
  }
  EXPECT_TRUE(client_.status.ok());
  EXPECT_TRUE(waiting.ended && waiting.status.ok());
  EXPECT_EQ(idle, 1);
}

// A worker that never ends its leg is told to, and does not keep us from going.
TEST_F(RouterCoreTest, ALegThatOutlivesItsAnswerIsCancelledInAWhile) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFrame(d_, FakeFrame(1, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
  core_->OnLegFinished(p_, absl::OkStatus());
  Pass(options_.await_grace - absl::Milliseconds(1));
  EXPECT_EQ(Leg(d_).cancels, 0);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(Leg(d_).cancels, 1);
  EXPECT_EQ(Leg(p_).cancels, 0);
}

TEST_F(RouterCoreTest, AnIdleRouterDrainsAtOnce) {
  Cluster(0, 1);
  bool idle = false;
  core_->Drain([&] { idle = true; });
  EXPECT_TRUE(idle);
}

TEST_F(RouterCoreTest, SamplesEndOneByOneAndTheRequestWithTheLast) {
  Cluster(1, 1);
  GenerateRequest request = Request();
  request.n = 2;
  Submit(request);
  // Two sequences over the prompt's blocks.
  EXPECT_EQ(core_->workers().Find(Leg(d_).worker)->reserved.requests, 2);
  Accept();
  auto of = [](int sample, TokenFrame frame) {
    frame.sample = sample;
    return frame;
  };
  core_->OnLegFrame(p_, of(0, FakeFrame(0, 1)));
  core_->OnLegFrame(d_, of(0, FakeFrame(1, 1, FinishReason::kStop)));
  EXPECT_FALSE(client_.ended);
  client_.ids.clear();
  core_->OnLegFrame(p_, of(1, FakeFrame(0, 1)));
  core_->OnLegFrame(d_, of(1, FakeFrame(1, 2, FinishReason::kLength)));
  EXPECT_TRUE(client_.ended);
  EXPECT_TRUE(client_.status.ok());
  EXPECT_EQ(probe_.outcomes[0].delivered_tokens, 5);
}

}  // namespace
}  // namespace penstock
