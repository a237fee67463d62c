#include "router/core/router_core.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/least_time_policy.h"
#include "router/core/router_fakes.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

class RouterCoreTest : public ::testing::Test {
 protected:
  RouterCoreTest()
      : random_(1),
        hasher_(HashSecret("key")),
        policy_({.local_prefill_tokens = 16}, *CostModel::Create({})) {
    options_.workers.content = ContentId(7);
  }

  void MakeCore() {
    core_ = *RouterCore::Create(
        options_,
        {&clock_, &timers_, &random_, &hasher_, &policy_, &legs_, &probe_});
  }
  void Add(const std::string& name, bool prefill, bool decode,
           uint64_t incarnation = 1) {
    WorkerInfo info;
    info.key = {name, Incarnation(incarnation)};
    info.roles = {prefill, decode};
    info.control_address = absl::StrCat(name, ":1");
    info.content = ContentId(7);
    info.total_blocks = 10000;
    info.max_sequences = 1000;
    info.transports = {TransportKind::kTcp};
    ASSERT_TRUE(core_->OnRegister(info).ok());
    Beat(info.key, WorkerHealth::kReady);
  }
  void Beat(const WorkerKey& worker, WorkerHealth health) {
    WorkerLoad load;
    load.health = health;
    load.total_blocks = load.free_blocks = 10000;
    ASSERT_TRUE(core_->OnLoad(worker, load).ok());
  }
  // One prefill and one decode worker, "p1" and "d1", and so on.
  void Cluster(int prefills, int decodes) {
    MakeCore();
    for (int i = 1; i <= prefills; ++i) Add(absl::StrCat("p", i), true, false);
    for (int i = 1; i <= decodes; ++i) Add(absl::StrCat("d", i), false, true);
  }
  static GenerateRequest Request(int prompt = 100) {
    GenerateRequest request;
    request.prompt.assign(prompt, 5);
    return request;
  }
  RequestId Submit(GenerateRequest request = Request()) {
    auto id = core_->Submit(std::move(request), &client_);
    EXPECT_TRUE(id.ok()) << id.status();
    p_ = legs_.Last(kP);
    d_ = legs_.Last(kD);
    return id.value_or(RequestId());
  }
  void Accept() {
    core_->OnLegAccepted(d_);
    core_->OnLegAccepted(p_);
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    timers_.RunDue(clock_.Now());
  }
  const FakeLegs::Leg& Leg(LegId id) { return legs_.legs.at(id); }
  ErrorReason Reason() const { return ErrorInfoOf(client_.status).reason; }

  // After each test: what is left ends, and nothing is left over.
  void TearDown() override {
    if (core_ == nullptr) return;
    for (const auto& [id, leg] : legs_.legs) {
      core_->OnLegFinished(id, absl::CancelledError("gone"));
    }
    EXPECT_TRUE(core_->CheckAccounting().ok()) << core_->CheckAccounting();
    EXPECT_EQ(core_->running(), 0);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(core_->workers().reservations(), 0);
    EXPECT_EQ(probe_.started, static_cast<int>(probe_.outcomes.size()));
    EXPECT_EQ(probe_.running, 0);
    EXPECT_EQ(probe_.queued, 0);
    // Only the workers' silence is watched still.
    EXPECT_EQ(timers_.size(), core_->workers().view().workers.size());
  }

  ManualClock clock_;
  Timers timers_;
  SeededRandom random_;
  BlockHasher hasher_;
  LeastTimePolicy policy_;
  FakeLegs legs_;
  FakeProbe probe_;
  RouterCore::Options options_;
  std::unique_ptr<RouterCore> core_;
  FakeClient client_;
  LegId p_ = 0, d_ = 0;
};

TEST_F(RouterCoreTest, OptionsAreChecked) {
  options_.max_running = 0;
  RouterCore::Ports ports = {&clock_,  &timers_, &random_, &hasher_,
                             &policy_, &legs_,   &probe_};
  auto core = RouterCore::Create(options_, ports);
  EXPECT_THAT(std::string(core.status().message()), HasSubstr("max_running"));
  options_ = {};
  EXPECT_FALSE(RouterCore::Create(options_, ports).ok());  // no content
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

TEST_F(RouterCoreTest, LegsThatEndWithoutALastTokenAreAnError) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(d_, absl::OkStatus());
  EXPECT_FALSE(client_.ended);
  core_->OnLegFinished(p_, absl::OkStatus());
  EXPECT_EQ(Reason(), ErrorReason::kInternal);
}

TEST_F(RouterCoreTest, DecodeThatEndedEarlyIsNotWaitedForForEver) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFinished(d_, absl::OkStatus());
  Pass(options_.await_grace);
  EXPECT_EQ(Reason(), ErrorReason::kInternal);
  EXPECT_EQ(Leg(p_).cancels, 1);
}

TEST_F(RouterCoreTest, ARefusalCancelsTheOtherLegAtOnce) {
  Cluster(1, 1);
  Submit();
  core_->OnLegFinished(d_, MakeError(ErrorReason::kKvTooSmall, "too small"));
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_EQ(Reason(), ErrorReason::kKvTooSmall);
  EXPECT_THAT(probe_.retried, IsEmpty());
}

// Prefill only knows that decode gave up; decode knows why.
TEST_F(RouterCoreTest, TheTellingReasonWins) {
  Cluster(2, 2);
  Submit();
  core_->OnLegFinished(p_, MakeError(ErrorReason::kTransferFailed, "gave up"));
  EXPECT_EQ(Leg(d_).cancels, 1);
  EXPECT_FALSE(client_.ended);
  core_->OnLegFinished(d_, MakeError(ErrorReason::kKvTooSmall, "too small"));
  EXPECT_EQ(Reason(), ErrorReason::kKvTooSmall);
}

TEST_F(RouterCoreTest, TheReasonIsWaitedForBriefly) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(d_, MakeError(ErrorReason::kTransferFailed, "broken"));
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_FALSE(client_.ended);
  Pass(options_.settle_grace);
  EXPECT_EQ(Reason(), ErrorReason::kTransferFailed);
  EXPECT_EQ(Leg(p_).cancels, 1);
}

TEST_F(RouterCoreTest, RetriesElsewhereBeforeTheFirstToken) {
  Cluster(2, 2);
  Submit();
  Accept();
  LegId first_p = p_, first_d = d_;
  core_->OnLegFinished(d_, MakeError(ErrorReason::kQueueFull, "full"));
  EXPECT_EQ(Leg(first_p).cancels, 1);
  ASSERT_EQ(legs_.legs.size(), 4u);
  p_ = legs_.Last(kP);
  d_ = legs_.Last(kD);
  EXPECT_NE(Leg(d_).worker, Leg(first_d).worker);
  EXPECT_EQ(Leg(d_).request.attempt, AttemptId(2));
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

TEST_F(RouterCoreTest, AttemptsAreBounded) {
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

TEST_F(RouterCoreTest, ARetryNeedsAnotherWorker) {
  Cluster(0, 1);
  Submit();
  core_->OnLegFinished(d_, absl::UnavailableError("down"));
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(legs_.legs.size(), 1u);
}

// Nobody knows which of the pair was at fault: decode alone is left to try.
TEST_F(RouterCoreTest, ABrokenPairFallsBackToDecodeAlone) {
  Cluster(1, 1);
  Submit();
  core_->OnLegFinished(p_, MakeError(ErrorReason::kTransferFailed, "broken"));
  core_->OnLegFinished(d_, absl::CancelledError("cancelled"));
  ASSERT_EQ(legs_.legs.size(), 3u);
  EXPECT_EQ(Leg(legs_.Last(kD)).request.partner.worker, "");
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

TEST_F(RouterCoreTest, NeverRetriesAfterAToken) {
  Cluster(2, 2);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(p_, absl::OkStatus());
  core_->OnLegFinished(d_, absl::UnavailableError("died"));
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(legs_.legs.size(), 2u);
}

TEST_F(RouterCoreTest, RetriesHaveABudget) {
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
  EXPECT_EQ(core_->running(), 2);
  for (LegId leg : {legs_.Last(kD) - 1, legs_.Last(kD)}) {
    core_->OnLegFinished(leg, absl::UnavailableError("outage"));
  }
}

TEST_F(RouterCoreTest, PrefillLostAfterItsTokenLetsDecodeGoOn) {
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

TEST_F(RouterCoreTest, PrefillLostAfterItsTokenAndASilentDecodeEnd) {
  Cluster(1, 1);
  Submit();
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  core_->OnLegFinished(p_, absl::UnavailableError("died"));
  EXPECT_FALSE(client_.ended);
  Pass(options_.await_grace);
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_EQ(Leg(d_).cancels, 1);
}

TEST_F(RouterCoreTest, PrefillThatDiesBeforeTheTransferIsReplaced) {
  Cluster(2, 1);
  Submit();
  Accept();
  std::string first = Leg(p_).worker.name;
  LegId first_d = d_;
  core_->OnWorkerLost(Leg(p_).worker, absl::UnavailableError("stream broke"));
  EXPECT_EQ(Leg(first_d).cancels, 1);
  EXPECT_EQ(Leg(p_).cancels, 1);
  EXPECT_NE(legs_.Last(kP), p_);
  EXPECT_NE(Leg(legs_.Last(kP)).worker.name, first);
  EXPECT_EQ(core_->workers().reservations(), 2);
  core_->Cancel(Leg(first_d).request.request.id);
  EXPECT_EQ(core_->workers().reservations(), 0);
}

TEST_F(RouterCoreTest, ANewLifeOfAWorkerEndsTheLegsOfTheOld) {
  Cluster(0, 1);
  Submit();
  LegId old = d_;
  Add("d1", false, true, 2);
  EXPECT_EQ(Leg(old).cancels, 1);
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);  // nobody else was there then
  client_ = FakeClient();
  Submit();
  EXPECT_EQ(Leg(d_).request.worker_incarnation, Incarnation(2));
  // The old life's stream breaking late means nothing to the new one.
  core_->OnWorkerLost({"d1", Incarnation(1)}, absl::UnavailableError("late"));
  EXPECT_FALSE(client_.ended);
  core_->OnLegFrame(d_, FakeFrame(0, 1, FinishReason::kStop));
}

TEST_F(RouterCoreTest, SilentWorkersLoseTheirRequests) {
  Cluster(0, 1);
  Submit();
  Pass(options_.workers.heartbeat_interval * options_.workers.suspect_after);
  EXPECT_FALSE(client_.ended);
  Pass(options_.workers.heartbeat_interval * options_.workers.lost_after);
  EXPECT_EQ(Reason(), ErrorReason::kWorkerLost);
  EXPECT_FALSE(core_->CanServe());
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

TEST_F(RouterCoreTest, BoundsWhatRunsAndWhatWaits) {
  options_.max_running = 2;
  options_.max_queued = 5;
  Cluster(0, 1);
  std::vector<FakeClient> clients(10);
  int accepted = 0;
  for (FakeClient& client : clients) {
    auto id = core_->Submit(Request(9), &client);
    if (id.ok()) {
      ++accepted;
      continue;
    }
    ErrorInfo info = ErrorInfoOf(id.status());
    EXPECT_EQ(info.reason, ErrorReason::kQueueFull);
    EXPECT_EQ(info.retry_after, options_.retry_after);
    EXPECT_FALSE(client.ended);  // a refusal is an answer of Submit alone
  }
  EXPECT_EQ(accepted, 7);
  EXPECT_EQ(probe_.rejected.size(), 3u);
  EXPECT_EQ(core_->running(), 2);
  EXPECT_EQ(core_->queued(), 5);
  // One ends, one starts, until all are served in order.
  for (int served = 0; served < 7; ++served) {
    LegId leg = legs_.legs.begin()->first + served;
    ASSERT_TRUE(legs_.legs.contains(leg));
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
    core_->OnLegFinished(leg, absl::OkStatus());
    EXPECT_TRUE(clients[served].ended);
  }
}

TEST_F(RouterCoreTest, HigherPriorityWaitsLess) {
  options_.max_running = 1;
  Cluster(0, 1);
  std::vector<FakeClient> clients(4);
  const int priorities[] = {0, 0, INT32_MIN, 5};
  for (int i = 0; i < 4; ++i) {
    GenerateRequest request = Request(9);
    request.priority = priorities[i];
    request.client_request_id = absl::StrCat(i);
    ASSERT_TRUE(core_->Submit(request, &clients[i]).ok());
  }
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    LegId leg = legs_.Last(kD);
    order.push_back(Leg(leg).request.request.client_request_id);
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
  }
  EXPECT_THAT(order, ElementsAre("0", "3", "1", "2"));
}

TEST_F(RouterCoreTest, QueuedRequestsHaveDeadlinesAndCanBeCancelled) {
  options_.max_running = 1;
  Cluster(0, 1);
  Submit(Request(9));
  FakeClient late, dropped;
  GenerateRequest request = Request(9);
  request.timeout = absl::Milliseconds(10);
  ASSERT_TRUE(core_->Submit(request, &late).ok());
  RequestId id = *core_->Submit(Request(9), &dropped);
  core_->Cancel(id);
  EXPECT_EQ(ErrorInfoOf(dropped.status).reason, ErrorReason::kCancelled);
  Pass(absl::Milliseconds(10));
  EXPECT_EQ(ErrorInfoOf(late.status).reason, ErrorReason::kDeadline);
  EXPECT_EQ(core_->queued(), 0);
  EXPECT_EQ(legs_.legs.size(), 1u);
  core_->OnLegFrame(d_, FakeFrame(0, 1, FinishReason::kStop));
}

TEST_F(RouterCoreTest, FullWorkersMakeRequestsWait) {
  MakeCore();
  WorkerInfo info;
  info.key = {"d", Incarnation(1)};
  info.roles.decode = true;
  info.control_address = "d:1";
  info.content = ContentId(7);
  info.total_blocks = 100;
  info.max_sequences = 1;
  info.transports = {TransportKind::kTcp};
  ASSERT_TRUE(core_->OnRegister(info).ok());
  WorkerLoad load;
  load.health = WorkerHealth::kReady;
  load.active_requests = 2;  // another router's
  ASSERT_TRUE(core_->OnLoad(info.key, load).ok());
  Submit(Request(9));
  EXPECT_THAT(legs_.legs, IsEmpty());
  EXPECT_EQ(core_->queued(), 1);
  load.active_requests = 1;
  ASSERT_TRUE(core_->OnLoad(info.key, load).ok());
  EXPECT_EQ(legs_.legs.size(), 1u);
  core_->OnLegFrame(legs_.Last(kD), FakeFrame(0, 1, FinishReason::kStop));
  EXPECT_TRUE(client_.status.ok());
}

TEST_F(RouterCoreTest, WithoutWorkersRequestsAreRefused) {
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

TEST_F(RouterCoreTest, AnIdleRouterDrainsAtOnce) {
  Cluster(0, 1);
  bool idle = false;
  core_->Drain([&] { idle = true; });
  EXPECT_TRUE(idle);
}

}  // namespace
}  // namespace penstock
