// Legs, clients, workers and time interleaved from a seed. Whatever happens:
// every request ends exactly once, tokens have no gaps (FakeClient checks
// both), and when all is over nothing is reserved, queued or timed.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/least_time_policy.h"
#include "router/core/router_core.h"
#include "router/core/router_fakes.h"

namespace penstock {
namespace {

constexpr int kWorkers = 6;

// What the world has made of one run, for comparing runs.
struct Tally {
  int ok = 0, failed = 0, refused = 0, retried = 0;
  std::map<ErrorReason, int> reasons;
  std::vector<TokenId> tokens;
  friend bool operator==(const Tally&, const Tally&) = default;
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed),
        core_random_(seed + 1000),
        hasher_(HashSecret("key")),
        policy_({.requests_per_sequence = 2}, *CostModel::Create({})) {
    RouterCore::Options options;
    options.workers.content = ContentId(7);
    options.max_running = 12;
    options.max_queued = 6;
    options.max_attempts = 1 + random_.Below(3);
    options.retry_floor = 1 + random_.Below(3);
    options.await_grace = absl::Milliseconds(200);
    core_ = *RouterCore::Create(options, {&clock_, &timers_, &core_random_,
                                          &hasher_, &policy_, &legs_, &probe_});
  }

  void Step() {
    switch (random_.Below(16)) {
      case 0:
      case 1:
        Submit();
        break;
      case 2:
        if (random_.Below(4) == 0) CancelSome();
        break;
      case 3:
        TouchWorker();
        break;
      case 4:
        Pass(absl::Milliseconds(random_.Below(120)));
        break;
      default:
        MoveLeg();
    }
    absl::Status accounts = core_->CheckAccounting();
    ASSERT_TRUE(accounts.ok()) << accounts;
  }

  // No more requests; legs end, time passes.
  Tally Finish() {
    bool idle = false;
    core_->Drain([&] { idle = true; });
    for (int round = 0; round < 1000 && !idle; ++round) {
      std::vector<LegId> open;
      for (const auto& [id, state] : states_) open.push_back(id);
      for (LegId id : open) EndLeg(id, absl::UnavailableError("the end"));
      Pass(absl::Seconds(1));
      TrackNewLegs();
    }
    EXPECT_TRUE(idle);
    EXPECT_TRUE(core_->CheckAccounting().ok()) << core_->CheckAccounting();
    EXPECT_EQ(core_->workers().reservations(), 0);
    EXPECT_EQ(timers_.size(), core_->workers().view().workers.size());
    for (const auto& client : clients_) {
      EXPECT_TRUE(client->ended);
      ++(client->status.ok() ? tally_.ok : tally_.failed);
      if (!client->status.ok()) {
        ++tally_.reasons[ErrorInfoOf(client->status).reason];
      }
      tally_.tokens.insert(tally_.tokens.end(), client->ids.begin(),
                           client->ids.end());
      if (client->status.ok()) {
        EXPECT_NE(client->last.finish, FinishReason::kNone);
      }
    }
    EXPECT_EQ(probe_.outcomes.size(), clients_.size());
    for (const auto& [id, leg] : legs_.legs) EXPECT_LE(leg.cancels, 1);
    tally_.retried = static_cast<int>(probe_.retried.size());
    return tally_;
  }

 private:
  // What a fake worker has done on a leg that has not ended.
  struct LegState {
    bool accepted = false;
    int next = 0;
    int total = 1;  // index behind its last token
  };

  void Pass(absl::Duration time) {
    clock_.Advance(time);
    timers_.RunDue(clock_.Now());
    TrackNewLegs();
  }

  void Submit() {
    auto client = std::make_unique<FakeClient>();
    GenerateRequest request;
    request.prompt.assign(1 + random_.Below(80), random_.Below(3));
    request.stop.max_tokens = 1 + random_.Below(8);
    request.priority = static_cast<int>(random_.Below(3));
    if (random_.Below(3) == 0) {
      request.timeout = absl::Milliseconds(random_.Below(2000));
    }
    auto id = core_->Submit(request, client.get());
    EXPECT_FALSE(client->ended) << "ended inside Submit";
    if (id.ok()) {
      ids_.push_back(*id);
      clients_.push_back(std::move(client));
    } else {
      ++tally_.refused;
    }
    TrackNewLegs();
  }

  void CancelSome() {
    if (ids_.empty()) return;
    core_->Cancel(ids_[random_.Below(ids_.size())]);
    TrackNewLegs();
  }

  WorkerKey Key(int worker) const {
    return {absl::StrCat("w", worker), Incarnation(lives_[worker])};
  }

  void TouchWorker() {
    const int worker = static_cast<int>(random_.Below(kWorkers));
    WorkerLoad load;
    load.total_blocks = load.free_blocks = 500;
    switch (random_.Below(6)) {
      case 0:
        core_->OnWorkerLost(Key(worker), absl::UnavailableError("broke"));
        break;
      case 1: {
        ++lives_[worker];
        WorkerInfo info;
        info.key = Key(worker);
        info.roles = {worker % 3 != 0, worker % 3 != 1};
        info.control_address = "x:1";
        info.content = ContentId(7);
        info.total_blocks = 500;
        info.max_sequences = 3;
        info.transports = {TransportKind::kTcp};
        ASSERT_TRUE(core_->OnRegister(info).ok());
        break;
      }
      default:
        load.health = random_.Below(8) == 0 ? WorkerHealth::kDraining
                                            : WorkerHealth::kReady;
        load.active_requests = random_.Below(4);
        core_->OnLoad(Key(worker), load).IgnoreError();
    }
    TrackNewLegs();
  }

  void TrackNewLegs() {
    for (auto it = legs_.legs.upper_bound(last_seen_); it != legs_.legs.end();
         ++it) {
      last_seen_ = it->first;
      const FakeLegs::Leg& leg = it->second;
      LegState state;
      if (leg.kind == LegKind::kDecode) {
        state.next = leg.request.partner.worker.empty() ? 0 : 1;
        state.total = leg.request.request.stop.max_tokens;
      }
      states_[it->first] = state;
    }
  }

  void EndLeg(LegId id, const absl::Status& status) {
    states_.erase(id);
    core_->OnLegFinished(id, status);
    TrackNewLegs();
  }

  // One event of one leg, mostly as a worker would do it.
  void MoveLeg() {
    if (states_.empty()) return;
    auto it = states_.begin();
    std::advance(it, random_.Below(states_.size()));
    const LegId id = it->first;
    LegState& state = it->second;
    const FakeLegs::Leg& leg = legs_.legs.at(id);
    if (leg.cancels > 0 && random_.Below(2) == 0) {
      EndLeg(id, absl::CancelledError("as asked"));
      return;
    }
    switch (random_.Below(60)) {
      case 0:
        EndLeg(id, absl::UnavailableError("died"));
        return;
      case 1:
        EndLeg(id, MakeError(ErrorReason::kTransferFailed, "broke"));
        return;
      case 2:
        EndLeg(id, MakeError(ErrorReason::kQueueFull, "full"));
        return;
      case 3:
        EndLeg(id, MakeError(ErrorReason::kKvTooSmall, "small"));
        return;
      case 4:  // a worker that cannot count
        core_->OnLegFrame(id, FakeFrame(random_.Below(12), random_.Below(3)));
        return;
      default:
        break;
    }
    if (!state.accepted) {
      state.accepted = true;
      core_->OnLegAccepted(id);
    } else if (state.next < state.total) {
      int count = 1 + random_.Below(state.total - state.next);
      bool last = state.next + count == leg.request.request.stop.max_tokens;
      int repeated = random_.Below(8) == 0 && state.next > 1;
      core_->OnLegFrame(
          id, FakeFrame(state.next - repeated, count + repeated,
                        last ? FinishReason::kLength : FinishReason::kNone));
      state.next += count;
    } else {
      EndLeg(id, absl::OkStatus());
    }
    TrackNewLegs();
  }

  ManualClock clock_;
  Timers timers_;
  SeededRandom random_, core_random_;
  BlockHasher hasher_;
  LeastTimePolicy policy_;
  FakeLegs legs_;
  FakeProbe probe_;
  std::unique_ptr<RouterCore> core_;
  std::vector<std::unique_ptr<FakeClient>> clients_;
  std::vector<RequestId> ids_;
  std::map<LegId, LegState> states_;
  LegId last_seen_ = 0;
  uint64_t lives_[kWorkers] = {};
  Tally tally_;
};

Tally RunWorld(uint64_t seed) {
  World world(seed);
  for (int step = 0; step < 3000; ++step) {
    world.Step();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ", step " << step;
      break;
    }
  }
  return world.Finish();
}

TEST(RouterCoreRandomTest, EveryRequestEndsOnceAndNothingIsLeft) {
  Tally sum;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Tally tally = RunWorld(seed);
    if (HasFailure()) return;
    sum.ok += tally.ok;
    sum.failed += tally.failed;
    sum.refused += tally.refused;
    sum.retried += tally.retried;
    for (const auto& [reason, count] : tally.reasons) {
      sum.reasons[reason] += count;
    }
  }
  // The runs did reach what they are for.
  EXPECT_GT(sum.ok, 1000);
  EXPECT_GT(sum.refused, 100);
  EXPECT_GT(sum.retried, 300);
  for (ErrorReason reason :
       {ErrorReason::kWorkerLost, ErrorReason::kTransferFailed,
        ErrorReason::kQueueFull, ErrorReason::kKvTooSmall,
        ErrorReason::kInternal, ErrorReason::kCancelled,
        ErrorReason::kDeadline}) {
    EXPECT_GT(sum.reasons[reason], 50) << ReasonName(reason);
  }
}

TEST(RouterCoreRandomTest, EqualSeedsGiveEqualRuns) {
  EXPECT_EQ(RunWorld(7), RunWorld(7));
  EXPECT_NE(RunWorld(7), RunWorld(8));
}

}  // namespace
}  // namespace penstock
