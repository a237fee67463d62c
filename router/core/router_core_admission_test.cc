// Who runs, who waits, and for how long.

#include "router/core/router_core.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/router_fakes.h"
#include "router/core/testing/router_core_fixture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

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

// One hot prefix, all of it cached at one worker, and many requests at once:
// load, reserved at each pick, turns the owner's advantage into a queue, and
// when waiting there takes as long as computing, others compute.
TEST_F(RouterCoreTest, AHotPrefixDoesNotDrownItsOwner) {
  options_.max_running = 10000;
  Cluster(4, 2);
  const GenerateRequest hot = Request(512);
  const auto chain = hasher_.Chain(
      hasher_.Root({ContentId(7), "", hot.tenant, hot.cache_salt}), hot.prompt);
  const CacheEvent stored{1, BlocksStored{BlockHash(), chain}};
  core_->OnCacheEvents({"p1", Incarnation(1)}, {stored});
  std::vector<std::unique_ptr<FakeClient>> clients;
  std::map<std::string, int> legs;
  while (legs["p1"] == static_cast<int>(clients.size()) &&
         clients.size() < 2000) {
    clients.push_back(std::make_unique<FakeClient>());
    ASSERT_TRUE(core_->Submit(hot, clients.back().get()).ok());
    ++legs[Leg(legs_.Last(kP)).worker.name];
    ++legs[Leg(legs_.Last(kD)).worker.name];
  }
  const CostModel cost = *CostModel::Create({});
  const absl::Duration all = cost.Prefill(512, 0), tail = cost.Prefill(16, 496);
  const absl::Duration queue =
      core_->workers().Find({"p1", Incarnation(1)})->reserved.time;
  EXPECT_GT(legs["p1"], 1);
  EXPECT_LE(queue, all);
  EXPECT_GE(queue, all - tail);
  // Decode does not depend on who has the prompt.
  EXPECT_LE(std::abs(legs["d1"] - legs["d2"]), 1);
  for (LegId id = 1; id <= legs_.Last(kD); id += 2) {
    core_->OnLegFrame(id, FakeFrame(0, 1));
    core_->OnLegFrame(id + 1, FakeFrame(1, 1, FinishReason::kStop));
  }
}

}  // namespace
}  // namespace penstock
