#include "tools/simulator/trace/trace_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "tools/simulator/trace/trace_worker.h"

namespace penstock {
namespace {

constexpr ContentId kContent{1};
// Few, so that they are made where the last ones were.
constexpr uint64_t kEventsAtOnce = 64;

}  // namespace

// The router's legs: orders on their way to workers.
class TraceCluster::Legs : public WorkerLegs {
 public:
  explicit Legs(TraceCluster* cluster) : cluster_(cluster) {}

  void Start(LegId leg, LegKind kind, const WorkerKey& worker,
             LegRequest request) override {
    TraceWorker* target = cluster_->workers_.at(worker.name).get();
    open_.emplace(leg, Leg{kind, target, request.transfer()});
    // A timer's callback is copyable, a prompt is better moved.
    auto sent = std::make_shared<LegRequest>(std::move(request));
    cluster_->After(cluster_->options_.latency, [leg, kind, target, sent] {
      target->StartLeg(leg, kind, std::move(*sent));
    });
  }

  void Cancel(LegId leg) override {
    auto it = open_.find(leg);
    if (it == open_.end()) return;
    cluster_->After(cluster_->options_.latency, [leg = it->second] {
      leg.worker->CancelLeg(leg.kind, leg.transfer);
    });
  }

  void Ended(LegId leg) { open_.erase(leg); }

 private:
  struct Leg {
    LegKind kind;
    TraceWorker* worker;
    TransferId transfer;
  };
  TraceCluster* cluster_;
  absl::flat_hash_map<LegId, Leg> open_;
};

absl::StatusOr<std::unique_ptr<TraceCluster>> TraceCluster::Create(
    TraceClusterOptions options) {
  ASSIGN_OR_RETURN(const CostModel cost,
                   CostModel::Create(options.preset.cost));
  std::unique_ptr<TraceCluster> cluster(
      new TraceCluster(std::move(options), cost));
  RETURN_IF_ERROR(cluster->Start());
  return cluster;
}

TraceCluster::TraceCluster(TraceClusterOptions options, const CostModel& cost)
    : options_(std::move(options)),
      cost_(cost),
      random_(options_.seed),
      policy_(options_.policy, cost_),
      network_(&cost_, options_.preset.layout, options_.latency, &clock_,
               &timers_),
      legs_(std::make_unique<Legs>(this)) {
  options_.router.workers.content = kContent;
  // Policies are compared by where they send work: workers that pull would lend
  // each the hits that another policy finds.
  options_.router.name_sources = false;
  options_.router.workers.work =
      WorkEstimate(cost_, options_.policy.expected_tokens);
}

TraceCluster::~TraceCluster() = default;

absl::Status TraceCluster::Start() {
  RouterCore::Ports ports;
  ports.clock = &clock_;
  ports.timers = &timers_;
  ports.random = &random_;
  ports.hasher = &hasher_;
  ports.policy = &policy_;
  ports.legs = legs_.get();
  ports.probe = &probe_;
  ASSIGN_OR_RETURN(router_, RouterCore::Create(options_.router, ports));
  for (int i = 0; i < options_.prefill_workers; ++i) {
    RETURN_IF_ERROR(
        AddWorker(absl::StrFormat("prefill%04d", i), {true, false}));
  }
  for (int i = 0; i < options_.decode_workers; ++i) {
    RETURN_IF_ERROR(AddWorker(absl::StrFormat("decode%04d", i), {false, true}));
  }
  return absl::OkStatus();
}

absl::Status TraceCluster::AddWorker(const std::string& name,
                                     WorkerRoles roles) {
  TraceWorker::Options options;
  options.core.self = {name, Incarnation(workers_.size() + 1)};
  options.core.roles = roles;
  options.core.model = options_.preset.name;
  options.core.content = kContent;
  options.core.total_blocks = options_.pool_blocks;
  options.core.context_length = options_.context_length;
  options.core.vocab_size = tokenizer_.vocab_size();
  options.core.engine =
      roles.prefill ? options_.preset.prefill : options_.preset.decode;
  options.vocabulary = tokenizer_.vocab_size();
  options.layout = options_.preset.layout;
  const TraceWorker::Ports ports = {&cost_,      &network_, &hasher_,
                                    &tokenizer_, &clock_,   &timers_};
  std::unique_ptr<TraceWorker>& worker = workers_[name];
  ASSIGN_OR_RETURN(worker, TraceWorker::Create(options, ports, [this, &worker] {
                     After(options_.latency,
                           [this, &worker] { Deliver(*worker); });
                   }));
  WorkerInfo info = worker->core().Info();
  info.control_address = name;
  RETURN_IF_ERROR(router_->OnRegister(info));
  Heartbeat(*worker);
  return absl::OkStatus();
}

// Hands what a worker has said to the router.
void TraceCluster::Deliver(TraceWorker& worker) {
  worker.TakeOutbox(delivered_);
  for (LegEvent& event : delivered_) {
    if (auto* frame = std::get_if<TokenFrame>(&event.what)) {
      router_->OnLegFrame(event.leg, std::move(*frame));
    } else if (auto* end = std::get_if<absl::Status>(&event.what)) {
      legs_->Ended(event.leg);
      router_->OnLegFinished(event.leg, *end);
    } else {
      router_->OnLegAccepted(event.leg);
    }
  }
}

void TraceCluster::Heartbeat(TraceWorker& worker) {
  worker.Settle();
  SendCacheEvents(worker);
  CHECK(router_->OnLoad(worker.key(), worker.core().Load()).ok());
  After(options_.router.workers.heartbeat_interval,
        [this, &worker] { Heartbeat(worker); });
}

void TraceCluster::SendCacheEvents(TraceWorker& worker) {
  CacheEventLog& log = worker.core().cache_events();
  while (worker.cache_events_sent < log.last_sequence()) {
    const auto events = log.Since(worker.cache_events_sent, kEventsAtOnce);
    if (!events.has_value()) {
      router_->OnCacheSnapshot(worker.key(), log.Snapshot());
      worker.cache_events_sent = log.last_sequence();
      return;
    }
    const CacheSync sync = router_->OnCacheEvents(worker.key(), *events);
    CHECK(!sync.resend_from.has_value()) << "events in order need no resync";
    worker.cache_events_sent += events->size();
  }
}

void TraceCluster::After(absl::Duration delay, std::function<void()> action) {
  timers_.Schedule(clock_.Now() + delay, std::move(action));
}

void TraceCluster::RunUntil(const std::function<bool()>& done) {
  while (!done()) {
    const Instant next = timers_.NextDeadline();
    CHECK(next != Instant::Infinite());
    clock_.AdvanceTo(std::max(next, clock_.Now()));
    events_ += timers_.RunDue(clock_.Now());
  }
}

int64_t TraceCluster::steps() const {
  int64_t steps = 0;
  for (const auto& [name, worker] : workers_) steps += worker->steps();
  return steps;
}

std::string TraceCluster::Finish() {
  RunUntil([this] {
    return router_->idle() &&
           std::all_of(workers_.begin(), workers_.end(), [](const auto& entry) {
             return entry.second->core().idle();
           });
  });
  for (const auto& [name, worker] : workers_) {
    const BlockPool& pool = worker->core().pool();
    pool.CheckConservation();
    const BlockCounts counts = pool.counts();
    if (counts.active + counts.in_transfer + counts.quarantined != 0) {
      return absl::StrCat(name, " leaks blocks");
    }
  }
  const absl::Status accounts = router_->CheckAccounting();
  return std::string(accounts.message());
}

}  // namespace penstock
