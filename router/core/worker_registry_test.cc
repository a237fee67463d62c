#include "router/core/worker_registry.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkerInfo Info(const std::string& name, uint64_t incarnation = 1) {
  WorkerInfo info;
  info.key = {name, Incarnation(incarnation)};
  info.roles.decode = true;
  info.control_address = absl::StrCat(name, ":1");
  info.content = ContentId(7);
  info.layout = LayoutId(1);
  info.total_blocks = 100;
  info.max_sequences = 8;
  info.transports = {TransportKind::kTcp};
  return info;
}

WorkerLoad Ready(int active = 0) {
  WorkerLoad load;
  load.health = WorkerHealth::kReady;
  load.active_requests = active;
  load.total_blocks = 100;
  load.free_blocks = 100;
  return load;
}

class WorkerRegistryTest : public ::testing::Test {
 protected:
  WorkerRegistryTest()
      : registry_(
            Options(), clock_, timers_,
            [this](const WorkerKey& worker, const absl::Status& why) {
              lost_.push_back(worker);
              EXPECT_EQ(registry_.Find(worker), nullptr);
              EXPECT_FALSE(why.ok());
            },
            [this](const WorkerKey& worker) { suspects_.push_back(worker); }) {}

  static WorkerRegistry::Options Options() {
    WorkerRegistry::Options options;
    options.content = ContentId(7);
    options.heartbeat_interval = absl::Seconds(1);
    options.suspect_after = 3;
    options.lost_after = 10;
    options.stalled_after = absl::Seconds(60);
    return options;
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    timers_.RunDue(clock_.Now());
  }

  ManualClock clock_;
  Timers timers_;
  std::vector<WorkerKey> lost_, suspects_;
  WorkerRegistry registry_;
  const WorkerKey a_ = {"a", Incarnation(1)};
};

TEST_F(WorkerRegistryTest, KeepsWorkersInOrderOfName) {
  ASSERT_TRUE(registry_.Register(Info("b")).ok());
  ASSERT_TRUE(registry_.Register(Info("c")).ok());
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_EQ(registry_.view().workers.size(), 3u);
  std::string names;
  for (const auto& [name, worker] : registry_.view().workers) {
    names += worker.info.key.name;
  }
  EXPECT_EQ(names, "abc");
}

TEST_F(WorkerRegistryTest, TakesTheCostsThatAWorkerMeasured) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  WorkerLoad load = Ready();
  ASSERT_TRUE(registry_.Report(a_, load).ok());
  EXPECT_EQ(registry_.Find(a_)->pace, WorkerPace{});
  const double inf = std::numeric_limits<double>::infinity();
  for (double seconds : {-1e-9, 3601.0, inf, -inf, std::nan("")}) {
    load.costs = {.row = 1e-3, .pair = seconds};
    EXPECT_EQ(ErrorInfoOf(registry_.Report(a_, load)).reason,
              ErrorReason::kInvalidField);
  }
  EXPECT_EQ(registry_.Find(a_)->pace, WorkerPace{});
  load.costs = {.row = 1.4e-3, .pair = 2e-7, .sample = 1.5e-3};
  ASSERT_TRUE(registry_.Report(a_, load).ok());
  EXPECT_EQ(registry_.Find(a_)->pace, (WorkerPace{2, 2}));
  const WorkerSlot slot = registry_.Find(a_)->slot;
  EXPECT_EQ(registry_.view().columns.prefill_pace[slot], 2);
  load.free_blocks = load.total_blocks / 2;
  ASSERT_TRUE(registry_.Report(a_, load).ok());
  EXPECT_EQ(registry_.view().columns.stretch[slot], 2 * (1 + 1));
}

TEST_F(WorkerRegistryTest, IsReadyOnlyOnceAHeartbeatSaysSo) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  EXPECT_FALSE(registry_.Find(a_)->ready());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  EXPECT_TRUE(registry_.Find(a_)->ready());
}

TEST_F(WorkerRegistryTest, RefusesAnotherModelWithAReason) {
  WorkerInfo info = Info("a");
  info.content = ContentId(8);
  absl::Status status = registry_.Register(info);
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kIncompatibleWorker);
  EXPECT_EQ(ErrorInfoOf(status).field, "content");
}

TEST_F(WorkerRegistryTest, RefusesNonsense) {
  std::vector<WorkerInfo> bad(6, Info("a"));
  bad[0].key.name = "";
  bad[1].key.incarnation = Incarnation();
  bad[2].roles = {};
  bad[3].control_address = "";
  bad[4].transports.clear();
  bad[5].total_blocks = -1;
  for (const WorkerInfo& info : bad) {
    EXPECT_EQ(ErrorInfoOf(registry_.Register(info)).reason,
              ErrorReason::kInvalidField);
  }
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  WorkerLoad load = Ready();
  load.free_blocks = 101;
  EXPECT_FALSE(registry_.Report(a_, load).ok());
  load = Ready(-1);
  EXPECT_FALSE(registry_.Report(a_, load).ok());
}

TEST_F(WorkerRegistryTest, RegistersAFewAtMost) {
  WorkerRegistry::Options options = Options();
  options.max_workers = 1;
  WorkerRegistry small(
      options, clock_, timers_, [](auto&&...) {}, [](auto&&...) {});
  ASSERT_TRUE(small.Register(Info("a")).ok());
  EXPECT_FALSE(small.Register(Info("b")).ok());
  EXPECT_TRUE(small.Register(Info("a", 2)).ok());
}

TEST_F(WorkerRegistryTest, SameIncarnationAgainKeepsEverything) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  EXPECT_TRUE(registry_.Find(a_)->ready());
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerRegistryTest, ANewIncarnationLosesTheOldOneFirst) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  std::vector<BlockHash> chain = {BlockHash(5)};
  CacheEvent event{1, BlocksStored{BlockHash(), chain}};
  registry_.ApplyEvents(a_, {event});
  EXPECT_THAT(registry_.view().CachedBlocks(chain), ElementsAre(1));
  LoadReservation held = registry_.Reserve(a_, {absl::Seconds(1), 1, 2});

  ASSERT_TRUE(registry_.Register(Info("a", 2)).ok());
  EXPECT_THAT(lost_, ElementsAre(a_));
  WorkerKey reborn{"a", Incarnation(2)};
  EXPECT_FALSE(registry_.Find(reborn)->ready());
  EXPECT_THAT(registry_.view().CachedBlocks(chain), ElementsAre(0));
  // Neither late reports nor late releases of the old life touch the new one.
  EXPECT_EQ(ErrorInfoOf(registry_.Report(a_, Ready())).reason,
            ErrorReason::kWorkerLost);
  registry_.Lose(a_, absl::UnavailableError("late"));
  EXPECT_EQ(lost_.size(), 1u);
  held.Release();
  EXPECT_EQ(registry_.Find(reborn)->reserved, LoadShare());
  EXPECT_TRUE(registry_.CheckIdle().ok());
}

TEST_F(WorkerRegistryTest, SilenceMakesSuspectThenLost) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  Pass(absl::Milliseconds(2999));
  EXPECT_FALSE(registry_.Find(a_)->suspect);
  Pass(absl::Milliseconds(1));
  EXPECT_TRUE(registry_.Find(a_)->suspect);
  EXPECT_THAT(suspects_, ElementsAre(a_));
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  EXPECT_FALSE(registry_.Find(a_)->suspect);
  Pass(absl::Milliseconds(9999));
  EXPECT_THAT(lost_, IsEmpty());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(lost_, ElementsAre(a_));
  EXPECT_EQ(timers_.size(), 0u);
}

TEST_F(WorkerRegistryTest, TelemetryMayFailWithoutTheWorker) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  for (int second = 1; second <= 60; ++second) {
    Pass(absl::Seconds(1));
    registry_.Alive(a_);
    ASSERT_NE(registry_.Find(a_), nullptr);
    EXPECT_EQ(registry_.Find(a_)->suspect, second >= 3);
  }
  registry_.Alive({"a", Incarnation(9)});  // means nothing to this life
  Pass(absl::Milliseconds(9999));
  EXPECT_THAT(lost_, IsEmpty());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(lost_, ElementsAre(a_));
  registry_.Alive(a_);
}

// A worker that came later may have the lost one's place in the index.
TEST_F(WorkerRegistryTest, ALostWorkersReservationIsNotTheNextOnes) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  LoadReservation old = registry_.Reserve(a_, {absl::Seconds(2), 1, 3});
  const WorkerSlot slot = registry_.Find(a_)->slot;
  registry_.Lose(a_, absl::InternalError("x"));
  ASSERT_TRUE(registry_.Register(Info("b")).ok());
  const WorkerKey b = {"b", Incarnation(1)};
  ASSERT_EQ(registry_.Find(b)->slot, slot);
  const LoadShare share = {absl::Seconds(1), 1, 2};
  LoadReservation held = registry_.Reserve(b, share);
  old.Release();
  EXPECT_EQ(registry_.Find(b)->reserved, share);
}

// Its stream lives, its loop does not: the others' reports tell.
TEST_F(WorkerRegistryTest, AWorkerThatHangsIsLostInTheEnd) {
  const WorkerKey b{"b", Incarnation(1)};
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Register(Info("b")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  for (int second = 1; second <= 60; ++second) {
    EXPECT_THAT(lost_, IsEmpty());
    ASSERT_TRUE(registry_.Report(b, Ready()).ok());
    registry_.Alive(a_);
    Pass(absl::Seconds(1));
  }
  EXPECT_THAT(lost_, ElementsAre(a_));
}

// Nor is anybody lost when the reports come back, one after the other, or when
// somebody new comes who has not reported either.
TEST_F(WorkerRegistryTest, ATelemetryOutageLosesNobody) {
  const WorkerKey b{"b", Incarnation(1)};
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Register(Info("b")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  Pass(absl::Milliseconds(1500));
  ASSERT_TRUE(registry_.Report(b, Ready()).ok());
  auto pass = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      Pass(absl::Seconds(1));
      for (const char* name : {"a", "b", "c"}) {
        registry_.Alive({name, Incarnation(1)});
      }
    }
  };
  pass(100);
  ASSERT_TRUE(registry_.Register(Info("c")).ok());
  pass(100);
  EXPECT_THAT(lost_, IsEmpty());
  ASSERT_TRUE(registry_.Report(b, Ready()).ok());
  pass(2);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(WorkerRegistryTest, ReservationsAreGivenBackOnce) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  {
    LoadReservation first = registry_.Reserve(a_, {absl::Seconds(2), 1, 3});
    LoadReservation second = registry_.Reserve(a_, {absl::Seconds(1), 1, 1});
    EXPECT_EQ(registry_.Find(a_)->reserved,
              (LoadShare{absl::Seconds(3), 2, 4}));
    LoadReservation moved = std::move(first);
    EXPECT_FALSE(registry_.CheckIdle().ok());
    second = std::move(moved);  // gives back what `second` held
    EXPECT_EQ(registry_.Find(a_)->reserved,
              (LoadShare{absl::Seconds(2), 1, 3}));
    second.Release();
    second.Release();
    EXPECT_FALSE(second.held());
  }
  EXPECT_EQ(registry_.reservations(), 0);
  EXPECT_TRUE(registry_.CheckIdle().ok());
}

// The report's 5 requests include the 2 reserved when it came: one released and
// two new ones since make 6.
TEST_F(WorkerRegistryTest, PredictsFromTheReportAndWhatChangedSince) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  LoadShare share{absl::Seconds(1), 1, 10};
  LoadReservation r1 = registry_.Reserve(a_, share);
  LoadReservation r2 = registry_.Reserve(a_, share);
  WorkerLoad load = Ready(5);
  load.free_blocks = 40;
  ASSERT_TRUE(registry_.Report(a_, load).ok());
  r1.Release();
  LoadReservation r3 = registry_.Reserve(a_, share);
  LoadReservation r4 = registry_.Reserve(a_, share);
  const WorkerView& view = *registry_.Find(a_);
  EXPECT_EQ(view.PredictedRequests(), 6);
  EXPECT_EQ(view.PredictedBlocks(), 70);
  EXPECT_EQ(view.PredictedTime(absl::Seconds(20)), absl::Seconds(21));
  // A report that does not know our legs yet.
  ASSERT_TRUE(registry_.Report(a_, Ready(0)).ok());
  EXPECT_EQ(view.PredictedRequests(), 3);
  // No fresh report: our own counts.
  ASSERT_TRUE(registry_.Report(a_, load).ok());
  Pass(absl::Seconds(3));
  EXPECT_EQ(view.PredictedRequests(), 3);
  EXPECT_EQ(view.PredictedTime(absl::Seconds(20)), absl::Seconds(3));
}

// Two routers over one worker. What it reports are the requests of both; each
// moves that by what it did itself since, and by nothing else.
TEST_F(WorkerRegistryTest, AnotherRoutersRequestsAreInTheReport) {
  WorkerRegistry other(Options(), clock_, timers_,
                       [](const WorkerKey&, const absl::Status&) {});
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(other.Register(Info("a")).ok());
  auto ours = [&] { return registry_.Find(a_)->PredictedRequests(); };
  auto theirs = [&] { return other.Find(a_)->PredictedRequests(); };
  LoadShare share{absl::Seconds(1), 1, 10};
  LoadReservation first = registry_.Reserve(a_, share);
  std::vector<LoadReservation> more;
  for (int i = 0; i < 3; ++i) more.push_back(other.Reserve(a_, share));
  // Neither knows of the other's before the worker has told.
  EXPECT_EQ(ours(), 1);
  EXPECT_EQ(theirs(), 3);
  ASSERT_TRUE(registry_.Report(a_, Ready(4)).ok());
  ASSERT_TRUE(other.Report(a_, Ready(4)).ok());
  EXPECT_EQ(ours(), 4);
  EXPECT_EQ(theirs(), 4);
  LoadReservation second = registry_.Reserve(a_, share);
  more.clear();
  EXPECT_EQ(ours(), 5);
  EXPECT_EQ(theirs(), 1);
  ASSERT_TRUE(registry_.Report(a_, Ready(2)).ok());
  ASSERT_TRUE(other.Report(a_, Ready(2)).ok());
  EXPECT_EQ(ours(), 2);
  EXPECT_EQ(theirs(), 2);
  first.Release();
  second.Release();
  EXPECT_EQ(ours(), 0);
  EXPECT_EQ(theirs(), 2);
}

TEST_F(WorkerRegistryTest, AsksOnceForMissingEvents) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  auto store = [](uint64_t sequence, uint64_t parent) {
    return CacheEvent{sequence,
                      BlocksStored{BlockHash(parent), {BlockHash(parent + 1)}}};
  };
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(1, 0)}).resend_from, std::nullopt);
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(3, 2)}).resend_from, 2u);
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(4, 3)}).resend_from, std::nullopt);
  // The replay closes the gap; the next gap asks again.
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(2, 1), store(3, 2), store(4, 3)})
                .resend_from,
            std::nullopt);
  EXPECT_EQ(registry_.prefixes().memberships(), 4u);
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(6, 5)}).resend_from, 5u);
  // Too old for a replay: the worker sends a snapshot.
  registry_.ApplySnapshot(a_, {6, {{BlockHash(), {BlockHash(1)}}}});
  EXPECT_EQ(registry_.prefixes().memberships(), 1u);
  EXPECT_EQ(registry_.ApplyEvents(a_, {store(7, 1)}).resend_from, std::nullopt);
  EXPECT_EQ(registry_.prefixes().memberships(), 2u);
}

// A new stream of the same life does not know what the old one was asked for.
TEST_F(WorkerRegistryTest, RegisteringAgainForgetsWhatWasAskedFor) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  CacheEvent orphan{1, BlocksStored{BlockHash(9), {BlockHash(10)}}};
  EXPECT_EQ(registry_.ApplyEvents(a_, {orphan}).resend_from, 0u);
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  EXPECT_EQ(registry_.ApplyEvents(a_, {orphan}).resend_from, 0u);
  registry_.ApplySnapshot(a_, {1, {}});
  CacheEvent gap{4, BlocksStored{BlockHash(), {BlockHash(1)}}};
  EXPECT_EQ(registry_.ApplyEvents(a_, {gap}).resend_from, 2u);
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  EXPECT_EQ(registry_.ApplyEvents(a_, {gap}).resend_from, 2u);
}

TEST_F(WorkerRegistryTest, AWorkerThatDrainsDoesSoUntilItsEnd) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  ASSERT_TRUE(registry_.Report(a_, Ready()).ok());
  EXPECT_TRUE(registry_.NoteDraining(a_));
  ASSERT_TRUE(registry_.Report(a_, Ready(3)).ok());
  EXPECT_TRUE(registry_.Find(a_)->drains());
  EXPECT_EQ(registry_.Find(a_)->reported.active_requests, 3);
  ASSERT_TRUE(registry_.Register(Info("a", 2)).ok());
  ASSERT_TRUE(registry_.Report({"a", Incarnation(2)}, Ready()).ok());
  EXPECT_TRUE(registry_.Find({"a", Incarnation(2)})->ready());
}

TEST_F(WorkerRegistryTest, AnUnknownParentAsksForASnapshot) {
  ASSERT_TRUE(registry_.Register(Info("a")).ok());
  CacheEvent orphan{1, BlocksStored{BlockHash(9), {BlockHash(10)}}};
  EXPECT_EQ(registry_.ApplyEvents(a_, {orphan}).resend_from, 0u);
  EXPECT_EQ(registry_.ApplyEvents(a_, {orphan}).resend_from, std::nullopt);
  registry_.ApplySnapshot(a_,
                          {1, {{BlockHash(), {BlockHash(9), BlockHash(10)}}}});
  CacheEvent next{2, BlocksStored{BlockHash(10), {BlockHash(11)}}};
  EXPECT_EQ(registry_.ApplyEvents(a_, {next}).resend_from, std::nullopt);
  EXPECT_EQ(registry_.prefixes().memberships(), 3u);
}

}  // namespace
}  // namespace penstock
