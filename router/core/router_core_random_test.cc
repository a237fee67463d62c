// Legs, clients, workers and time interleaved from a seed. Whatever happens:
// every request ends exactly once, its tokens are those that it would have got
// without any fault, each leg is told what the client has, and when all is over
// nothing is reserved, queued or timed.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/policy/placement_policy.h"
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

// What a request's answers are, whoever makes them.
struct Truth {
  explicit Truth(const GenerateRequest& request) : request(request) {}

  int Length(int sample) const {
    return 1 + static_cast<int>((request.sampling.seed >> (4 * sample)) %
                                request.stop.max_tokens);
  }
  DeliveredToken Token(int sample, int index) const {
    const int id = static_cast<int>(
        (request.sampling.seed + 31 * sample + 17 * index) % 1009);
    return {id, request.sampling.mirostat.on ? 1.0f + index : 0.0f};
  }
  int Total() const {
    int total = 0;
    for (int s = 0; s < request.n; ++s) total += Length(s);
    return total;
  }
  TokenFrame Frame(int sample, int first, int count) const {
    TokenFrame frame;
    frame.sample = sample;
    frame.first_index = first;
    for (int i = first; i < first + count; ++i) {
      const DeliveredToken token = Token(sample, i);
      frame.tokens.push_back({token.token, "", {}, token.mirostat_mu});
    }
    if (first + count == Length(sample)) frame.finish = FinishReason::kStop;
    return frame;
  }

  const GenerateRequest request;
};

// Checks what a client gets against the truth.
class TruthfulClient {
 public:
  explicit TruthfulClient(const GenerateRequest& request)
      : truth(request), got(request.n) {
    sink.on_frame = [this](const TokenFrame& frame) {
      for (const FrameToken& token : frame.tokens) {
        std::vector<DeliveredToken>& sample = got[frame.sample];
        sample.push_back({token.id, token.mirostat_mu});
        EXPECT_EQ(
            sample.back(),
            truth.Token(frame.sample, static_cast<int>(sample.size()) - 1));
      }
      if (frame.finish != FinishReason::kNone) {
        EXPECT_EQ(static_cast<int>(got[frame.sample].size()),
                  truth.Length(frame.sample));
        EXPECT_EQ(++ended[frame.sample], 1);
      }
    };
  }

  void CheckEnd() const {
    EXPECT_TRUE(sink.ended);
    if (!sink.status.ok()) return;
    EXPECT_EQ(static_cast<int>(ended.size()), truth.request.n);
    EXPECT_EQ(sink.last.usage.completion_tokens, truth.Total());
  }

  const Truth truth;
  std::vector<std::vector<DeliveredToken>> got;  // by sample
  std::map<int, int> ended;
  FakeClient sink;
};

class World {
 public:
  explicit World(uint64_t seed)
      : random_(seed),
        core_random_(seed + 1000),
        hasher_(HashSecret("key")),
        policy_({}, *CostModel::Create({})) {
    RouterCore::Options options;
    options.workers.content = ContentId(7);
    options.max_running = 12;
    options.max_queued = 6;
    options.max_attempts = 1 + random_.Below(3);
    options.retry_floor = 1 + random_.Below(3);
    options.max_queue_age = absl::Milliseconds(400);
    options.guard.breaker.failures = 2;
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
        if (random_.Below(40) == 0) {
          FallSilent();
        } else {
          Pass(absl::Milliseconds(random_.Below(120)));
        }
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
      client->CheckEnd();
      const FakeClient& sink = client->sink;
      ++(sink.status.ok() ? tally_.ok : tally_.failed);
      if (!sink.status.ok()) {
        ++tally_.reasons[ErrorInfoOf(sink.status).reason];
      }
      tally_.tokens.insert(tally_.tokens.end(), sink.ids.begin(),
                           sink.ids.end());
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
    std::vector<int> next, end;  // by sample: token indices
    const Truth* truth = nullptr;

    // A sample with something to say still.
    std::optional<int> Open() const {
      for (size_t s = 0; s < next.size(); ++s) {
        if (next[s] < end[s]) return static_cast<int>(s);
      }
      return std::nullopt;
    }
  };

  void Pass(absl::Duration time) {
    clock_.Advance(time);
    timers_.RunDue(clock_.Now());
    TrackNewLegs();
  }

  void Submit() {
    GenerateRequest request;
    request.prompt.assign(1 + random_.Below(80), random_.Below(3));
    request.stop.max_tokens = 1 + random_.Below(12);
    request.priority = static_cast<int>(random_.Below(3));
    request.sampling.seed = random_.Next();
    request.sampling.mirostat.on = random_.Below(4) == 0;
    if (random_.Below(4) == 0) request.n = 2 + random_.Below(2);
    if (random_.Below(8) == 0) request.best_of = request.n + 1;
    if (random_.Below(3) == 0) {
      request.timeout = absl::Milliseconds(random_.Below(2000));
    }
    auto client = std::make_unique<TruthfulClient>(request);
    auto id = core_->Submit(request, &client->sink);
    EXPECT_FALSE(client->sink.ended) << "ended inside Submit";
    if (id.ok()) {
      ids_.push_back(*id);
      by_id_[*id] = client.get();
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
        if (random_.Below(4) == 0) {  // it lives, and says no more
          core_->OnAlive(Key(worker));
          break;
        }
        load.health = random_.Below(8) == 0 ? WorkerHealth::kDraining
                                            : WorkerHealth::kReady;
        load.active_requests = random_.Below(4);
        core_->OnLoad(Key(worker), load).IgnoreError();
    }
    TrackNewLegs();
  }

  // One worker says nothing while the others report, and no leg moves.
  void FallSilent() {
    const int silent = static_cast<int>(random_.Below(kWorkers));
    WorkerLoad load;
    load.health = WorkerHealth::kReady;
    load.total_blocks = load.free_blocks = 500;
    for (int round = 0; round < 4; ++round) {
      for (int worker = 0; worker < kWorkers; ++worker) {
        if (worker == silent) continue;
        core_->OnLoad(Key(worker), load).IgnoreError();
        TrackNewLegs();
      }
      Pass(absl::Milliseconds(500));
    }
  }

  void TrackNewLegs() {
    for (auto it = legs_.legs.upper_bound(last_seen_); it != legs_.legs.end();
         ++it) {
      last_seen_ = it->first;
      Track(it->first, it->second);
    }
  }

  void Track(LegId id, const FakeLegs::Leg& leg) {
    const GenerateRequest& request = leg.request.request;
    const TruthfulClient& client = *by_id_.at(request.id);
    LegState state;
    state.truth = &client.truth;
    const bool handoff = !leg.request.partner.worker.empty();
    std::vector<std::vector<DeliveredToken>> delivered = leg.request.delivered;
    EXPECT_LE(delivered.size(), static_cast<size_t>(request.n));
    delivered.resize(request.n);
    if (request.deferred()) {
      EXPECT_EQ(delivered, decltype(delivered)(request.n));
    } else {
      EXPECT_EQ(delivered, client.got);
    }
    for (int s = 0; s < request.n; ++s) {
      const int first = static_cast<int>(delivered[s].size());
      EXPECT_FALSE(handoff && request.n > 1 && first > 0);
      const int all = client.truth.Length(s);
      if (leg.kind == LegKind::kDecode) {
        const int after = handoff && !request.deferred() ? 1 : 0;
        state.next.push_back(first + after);
        state.end.push_back(all);
      } else {
        state.next.push_back(first);
        state.end.push_back(request.deferred() ? 0 : std::min(first + 1, all));
      }
    }
    states_[id] = std::move(state);
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
    if (random_.Below(8) == 0) {
      FailLeg(id, leg, state);
      return;
    }
    if (!state.accepted) {
      state.accepted = true;
      core_->OnLegAccepted(id);
    } else if (std::optional<int> sample = state.Open()) {
      Advance(id, leg, state, *sample);
    } else {
      EndLeg(id, absl::OkStatus());
    }
    TrackNewLegs();
  }

  void Advance(LegId id, const FakeLegs::Leg& leg, LegState& state,
               int sample) {
    int& next = state.next[sample];
    const int count = 1 + random_.Below(state.end[sample] - next);
    const int repeated = random_.Below(8) == 0 && next > 1;
    TokenFrame frame =
        state.truth->Frame(sample, next - repeated, count + repeated);
    next += count;
    if (!state.Open() && frame.finish != FinishReason::kNone) {
      frame.usage.prompt_tokens =
          static_cast<int>(leg.request.request.prompt.size());
      // What it counts when it was not there from the start is no matter.
      frame.usage.completion_tokens =
          leg.request.attempt == AttemptId(1) || leg.request.request.deferred()
              ? state.truth->Total()
              : 1;
    }
    core_->OnLegFrame(id, frame);
  }

  void FailLeg(LegId id, const FakeLegs::Leg& leg, const LegState& state) {
    // Whether or not it is there, the router must do well by it.
    const int history = static_cast<int>(leg.request.history().size());
    auto keeping = [&](ErrorReason reason) {
      const absl::Status status = MakeError(reason, "as drawn");
      return random_.Below(2) == 0
                 ? status
                 : WithKeptTokens(status, 1 + random_.Below(history));
    };
    switch (random_.Below(12)) {
      case 0:
      case 1:
        EndLeg(id, absl::UnavailableError("died"));
        return;
      case 2:
      case 3:
        EndLeg(id, keeping(ErrorReason::kTransferFailed));
        return;
      case 4:
        EndLeg(id, keeping(ErrorReason::kWorkerLost));
        return;
      case 5:
      case 6:
        EndLeg(id, keeping(ErrorReason::kDraining));
        return;
      case 7:
      case 8:
        EndLeg(id, MakeError(ErrorReason::kQueueFull, "full"));
        return;
      case 9:
        EndLeg(id, MakeError(ErrorReason::kKvTooSmall, "small"));
        return;
      case 10: {  // a worker that leaves tokens out
        const int sample = static_cast<int>(random_.Below(state.next.size()));
        TokenFrame frame;
        frame.sample = sample;
        frame.first_index = 13 + random_.Below(3);  // beyond any answer
        frame.tokens.resize(1);
        core_->OnLegFrame(id, frame);
        TrackNewLegs();
        return;
      }
      default:
        return;
    }
  }

  ManualClock clock_;
  Timers timers_;
  SeededRandom random_, core_random_;
  BlockHasher hasher_;
  PlacementPolicy policy_;
  FakeLegs legs_;
  FakeProbe probe_;
  std::unique_ptr<RouterCore> core_;
  std::vector<std::unique_ptr<TruthfulClient>> clients_;
  std::map<RequestId, const TruthfulClient*> by_id_;
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
  for (const MarkCount& mark : CoverageMarks()) {
    EXPECT_GT(mark.hits, 0u) << mark.text;
  }
}

TEST(RouterCoreRandomTest, EqualSeedsGiveEqualRuns) {
  EXPECT_EQ(RunWorld(7), RunWorld(7));
  EXPECT_NE(RunWorld(7), RunWorld(8));
}

}  // namespace
}  // namespace penstock
