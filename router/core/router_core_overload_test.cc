// More than there is room for: who goes first, who is refused, what is left of
// the capacity, and workers that should get nothing.

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
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

constexpr LegKind kD = LegKind::kDecode;

class RouterCoreOverloadTest : public RouterCoreTest {
 protected:
  GenerateRequest Of(const std::string& tenant, int priority = 0) {
    GenerateRequest request = Request(9);
    request.tenant = tenant;
    request.priority = priority;
    return request;
  }
  void Finish(LegId leg) {
    core_->OnLegFrame(leg, FakeFrame(0, 1, FinishReason::kStop));
    core_->OnLegFinished(leg, absl::OkStatus());
  }
  std::string NewestWorker() { return Leg(legs_.Last(kD)).worker.name; }
  ErrorReason ReasonOf(const FakeClient* client) {
    return ErrorInfoOf(client->status).reason;
  }
  void Busy(const std::string& worker, int requests) {
    WorkerLoad load;
    load.health = WorkerHealth::kReady;
    load.total_blocks = load.free_blocks = 10000;
    load.active_requests = requests;
    ASSERT_TRUE(core_->OnLoad({worker, Incarnation(1)}, load).ok());
  }
  // Attempts fail on the worker until its breaker opens.
  void Break(const std::string& worker) {
    for (int failed = 0; failed < options_.guard.breaker.failures;) {
      ASSERT_NE(Ask(Request(9)), nullptr);
      const LegId leg = legs_.Last(kD);
      if (Leg(leg).worker.name == worker) {
        core_->OnLegFinished(leg, absl::UnavailableError("broken"));
        ++failed;
        Finish(legs_.Last(kD));
      } else {
        Finish(leg);
      }
    }
  }
};

TEST_F(RouterCoreOverloadTest, AnOpenBreakerIsNeverChosen) {
  options_.retry_floor = 100;
  Cluster(0, 3);
  Break("d1");
  EXPECT_THAT(probe_.vetoed, ElementsAre("decode d1"));
  for (int i = 0; i < 30; ++i) {
    ASSERT_NE(Ask(Request(9)), nullptr);
    EXPECT_NE(NewestWorker(), "d1");
  }
  // One request tries it; the others wait for what comes of that.
  Pass(options_.guard.breaker.open_for);
  EXPECT_THAT(probe_.vetoed, IsEmpty());
  ASSERT_NE(Ask(Request(9)), nullptr);
  const LegId probe = legs_.Last(kD);
  ASSERT_EQ(Leg(probe).worker.name, "d1") << "it is idle";
  for (int i = 0; i < 30; ++i) {
    ASSERT_NE(Ask(Request(9)), nullptr);
    EXPECT_NE(NewestWorker(), "d1");
  }
  core_->OnLegFrame(probe, FakeFrame(0, 1));
  ASSERT_NE(Ask(Request(9)), nullptr);
  EXPECT_EQ(NewestWorker(), "d1");
  for (const auto& [id, leg] : std::map(legs_.legs)) {
    core_->OnLegFrame(id, FakeFrame(id == probe, 1, FinishReason::kStop));
  }
}

TEST_F(RouterCoreOverloadTest, AWorkerThatIsFullIsNotBroken) {
  options_.retry_floor = 100;
  Cluster(0, 3);
  for (int i = 0; i < 30; ++i) {
    ASSERT_NE(Ask(Request(9)), nullptr);
    core_->OnLegFinished(legs_.Last(kD),
                         MakeError(ErrorReason::kQueueFull, "full"));
    Finish(legs_.Last(kD));
  }
  EXPECT_THAT(probe_.vetoed, IsEmpty());
}

// Something is wrong that is no single worker's fault: all of them are tried.
TEST_F(RouterCoreOverloadTest, APoolIsNeverVetoedAway) {
  options_.retry_floor = 100;
  Cluster(0, 2);
  Break("d1");
  EXPECT_THAT(probe_.vetoed, ElementsAre("decode d1"));
  Add("d3", false, true);
  Break("d2");
  EXPECT_THAT(probe_.vetoed, IsEmpty());
  ASSERT_NE(Ask(Request(9)), nullptr);
  Finish(legs_.Last(kD));
}

TEST_F(RouterCoreOverloadTest, AllGoToTheOneThatIsNotBusy) {
  options_.max_queued = 0;
  Cluster(0, 4);
  for (const char* busy : {"d1", "d2", "d4"}) Busy(busy, 5000);
  for (int i = 0; i < 20; ++i) {
    ASSERT_NE(Ask(Request(9)), nullptr) << refusal_;
    EXPECT_EQ(NewestWorker(), "d3");
  }
  Busy("d3", 5000);
  EXPECT_EQ(Ask(Request(9)), nullptr);
  EXPECT_EQ(ErrorInfoOf(refusal_).reason, ErrorReason::kQueueFull);
  EXPECT_GE(ErrorInfoOf(refusal_).retry_after, options_.retry_after);
}

TEST_F(RouterCoreOverloadTest, WhoHasWaitedForTooLongIsToldSo) {
  options_.max_running = 1;
  options_.max_queue_age = absl::Seconds(2);
  Cluster(0, 1);
  FakeClient* runs = Ask(Request(9));
  FakeClient* first = Ask(Request(9));
  Pass(absl::Seconds(1));
  FakeClient* second = Ask(Request(9));
  Pass(absl::Milliseconds(999));
  EXPECT_FALSE(first->ended);
  Pass(absl::Milliseconds(1));
  ASSERT_TRUE(first->ended);
  EXPECT_EQ(ReasonOf(first), ErrorReason::kQueueFull);
  EXPECT_EQ(ErrorInfoOf(first->status).retry_after, options_.retry_after);
  EXPECT_FALSE(second->ended);
  Finish(legs_.Last(kD));
  EXPECT_TRUE(runs->status.ok());
  Finish(legs_.Last(kD));
  EXPECT_TRUE(second->ended);
  EXPECT_TRUE(second->status.ok());
}

TEST_F(RouterCoreOverloadTest, AFullQueueMakesRoomForAHigherPriority) {
  options_.max_running = 1;
  options_.max_queued = 2;
  Cluster(0, 1);
  Ask(Request(9));
  FakeClient* low = Ask(Of("a", 0));
  FakeClient* lower = Ask(Of("a", -1));
  EXPECT_EQ(Ask(Of("a", -1)), nullptr);
  FakeClient* high = Ask(Of("a", 1));
  ASSERT_NE(high, nullptr);
  EXPECT_EQ(ReasonOf(lower), ErrorReason::kQueueFull);
  EXPECT_FALSE(low->ended);
  EXPECT_EQ(core_->queued(), 2);
  for (int i = 0; i < 3; ++i) Finish(legs_.Last(kD));
  EXPECT_TRUE(high->status.ok());
  EXPECT_TRUE(low->status.ok());
}

TEST_F(RouterCoreOverloadTest, ATenantAtItsQuotaDoesNotKeepTheOthersWaiting) {
  options_.tenants["a"].max_running = 1;
  Cluster(0, 1);
  Ask(Of("a"));
  const LegId first = legs_.Last(kD);
  FakeClient* waits = Ask(Of("a"));
  EXPECT_EQ(core_->queued(), 1);
  Ask(Of("b"));
  EXPECT_EQ(core_->running(), 2);
  const LegId of_b = legs_.Last(kD);
  Finish(first);
  EXPECT_EQ(core_->queued(), 0);
  Finish(legs_.Last(kD));
  EXPECT_TRUE(waits->status.ok());
  Finish(of_b);
}

// A cluster of `kPlaces` places, each request taking `kService`, in exact time.
class Station : public RouterCoreOverloadTest {
 protected:
  static constexpr int kPlaces = 8;
  static constexpr absl::Duration kService = absl::Milliseconds(200);
  static constexpr double kCapacity = 40;  // requests a second

  struct Asked {
    FakeClient* client;
    std::string tenant;
    Instant at;
    std::optional<Instant> end;
  };

  void SetUp() override {
    options_.max_running = kPlaces;
    options_.max_queued = 100;
    options_.max_queue_age = absl::Seconds(1);
  }

  // Requests come evenly, in turns from the tenants, at so many a second.
  void Load(double rate, absl::Duration length,
            const std::vector<std::string>& tenants) {
    const absl::Duration gap = absl::Seconds(1 / rate);
    int count = 0;
    for (Instant end = clock_.Now() + length; clock_.Now() < end;) {
      GenerateRequest request = Of(tenants[count++ % tenants.size()]);
      request.timeout = absl::Seconds(3);
      if (FakeClient* client = Ask(request)) {
        asked_.push_back({client, request.tenant, clock_.Now(), {}});
      } else {
        refused_.push_back(refusal_);
      }
      RunUntil(clock_.Now() + gap);
      core_->OnAlive({"d1", Incarnation(1)});
    }
  }
  void RunUntil(Instant until) {
    for (;;) {
      for (; seen_ < legs_.Last(kD); ++seen_) {
        ends_.push_back({clock_.Now() + kService, seen_ + 1});
      }
      if (ends_.empty() || ends_.front().first > until) break;
      const auto [at, leg] = ends_.front();
      ends_.pop_front();
      Pass(at - clock_.Now());
      Finish(leg);
      for (Asked& asked : asked_) {
        if (asked.client->ended && !asked.end) asked.end = clock_.Now();
      }
    }
    Pass(until - clock_.Now());
  }
  int Good(const std::string& tenant = "") const {
    return static_cast<int>(
        std::count_if(asked_.begin(), asked_.end(), [&](const Asked& asked) {
          return asked.client->ended && asked.client->status.ok() &&
                 (tenant.empty() || asked.tenant == tenant);
        }));
  }

  std::vector<Asked> asked_;
  std::vector<absl::Status> refused_;
  std::deque<std::pair<Instant, LegId>> ends_;
  LegId seen_ = 0;
};

TEST_F(Station, TwiceTheCapacityLosesNoneOfIt) {
  Cluster(0, 1);
  Load(2 * kCapacity, absl::Minutes(1), {"a"});
  EXPECT_GT(Good(), 0.98 * 60 * kCapacity);
  for (const Asked& asked : asked_) {
    if (!asked.client->ended) continue;
    if (asked.client->status.ok()) {
      EXPECT_LE(*asked.end - asked.at, options_.max_queue_age + kService);
    } else {
      EXPECT_EQ(ReasonOf(asked.client), ErrorReason::kQueueFull);
    }
  }
  EXPECT_GT(refused_.size(), 1000u);
  for (const absl::Status& status : refused_) {
    EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kQueueFull);
    EXPECT_GE(ErrorInfoOf(status).retry_after, options_.retry_after);
  }
}

TEST_F(Station, TenantsShareAnOverloadByTheirWeights) {
  options_.tenants["a"].weight = 3;
  Cluster(0, 1);
  Load(4 * kCapacity, absl::Minutes(1), {"a", "b"});
  EXPECT_NEAR(Good("a"), 3 * Good("b"), 0.05 * 3 * Good("b"));
  EXPECT_GT(Good(), 0.98 * 60 * kCapacity);
}

}  // namespace
}  // namespace penstock
