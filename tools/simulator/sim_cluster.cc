#include "tools/simulator/sim_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

CostModel DefaultCost() {
  auto cost = CostModel::Create({});
  CHECK(cost.ok());
  return *cost;
}

}  // namespace

// The router's legs over the simulated network.
class SimCluster::Legs : public WorkerLegs {
 public:
  explicit Legs(SimCluster* cluster) : cluster_(cluster) {}

  void Start(LegId leg, LegKind kind, const WorkerKey& worker,
             LegRequest request) override;
  void Cancel(LegId leg) override;

 private:
  friend class Relay;
  struct Leg {
    LegKind kind;
    WorkerKey worker;
    TransferId transfer;
  };
  SimCluster* cluster_;
  std::map<LegId, Leg> legs_;
  // Alive as long as workers may call them: to the end.
  std::vector<std::unique_ptr<Relay>> relays_;
};

// What a worker says about one leg, on its way to the router.
class SimCluster::Relay : public LegSink {
 public:
  Relay(SimCluster* cluster, LegId leg) : cluster_(cluster), leg_(leg) {}

  void OnAccepted() override {
    ToRouter([](RouterCore& router, LegId leg) { router.OnLegAccepted(leg); });
  }
  void OnFrame(TokenFrame frame) override {
    ToRouter([frame = std::move(frame)](RouterCore& router, LegId leg) {
      router.OnLegFrame(leg, frame);
    });
  }
  void OnFinished(const absl::Status& status) override {
    ToRouter([status](RouterCore& router, LegId leg) {
      router.OnLegFinished(leg, status);
    });
  }

 private:
  void ToRouter(std::function<void(RouterCore&, LegId)> event) {
    cluster_->After(cluster_->options_.latency,
                    [cluster = cluster_, leg = leg_, event = std::move(event)] {
                      event(*cluster->router_, leg);
                    });
  }
  SimCluster* cluster_;
  LegId leg_;
};

void SimCluster::Legs::Start(LegId leg, LegKind kind, const WorkerKey& worker,
                             LegRequest request) {
  legs_[leg] = {kind, worker, request.transfer()};
  relays_.push_back(std::make_unique<Relay>(cluster_, leg));
  LegSink* sink = relays_.back().get();
  cluster_->After(
      cluster_->options_.latency, [this, leg, kind, worker, sink, request] {
        cluster_->Log(absl::StrCat(
            "leg ", leg, kind == LegKind::kPrefill ? " prefill " : " decode ",
            worker.name, " attempt ", request.attempt.value()));
        SimWorker* target = cluster_->worker(worker.name);
        if (target == nullptr || target->key() != worker) {
          sink->OnFinished(
              MakeError(ErrorReason::kWorkerLost, "no such worker any more"));
          return;
        }
        target->core().StartLeg(kind, request, sink);
        target->Settle();
      });
}

void SimCluster::Legs::Cancel(LegId leg) {
  auto it = legs_.find(leg);
  if (it == legs_.end()) return;
  cluster_->After(cluster_->options_.latency, [this, leg = it->second] {
    SimWorker* target = cluster_->worker(leg.worker.name);
    if (target == nullptr || target->key() != leg.worker) return;
    target->core().CancelLeg(leg.kind, leg.transfer);
    target->Settle();
  });
}

SimCluster::SimCluster(SimClusterOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      cost_(DefaultCost()),
      policy_(
          std::make_unique<LeastTimePolicy>(LeastTimePolicy::Options{}, cost_)),
      network_(std::make_unique<SimNetwork>(
          &clock_, &timers_, &hasher_, SimModel::Layout(), options_.latency)),
      legs_(std::make_unique<Legs>(this)) {
  if (options_.tokenizer == nullptr) options_.tokenizer = &tokenizer_;
  network_->trace = [this](const std::string& line) { Log(line); };
  options_.router.workers.content = ContentId(42);
  RouterCore::Ports ports;
  ports.clock = &clock_;
  ports.timers = &timers_;
  ports.random = &random_;
  ports.hasher = &hasher_;
  ports.policy = policy_.get();
  ports.legs = legs_.get();
  ports.probe = options_.probe != nullptr ? options_.probe : &probe_;
  auto router = RouterCore::Create(options_.router, ports);
  CHECK(router.ok()) << router.status().ToString();
  router_ = *std::move(router);
  if (options_.both_roles) {
    StartWorker("both", {true, true});
  } else {
    for (int i = 0; i < options_.prefill_workers; ++i) {
      StartWorker(absl::StrCat("prefill", i), {true, false});
    }
    for (int i = 0; i < options_.decode_workers; ++i) {
      StartWorker(absl::StrCat("decode", i), {false, true});
    }
  }
}

SimCluster::~SimCluster() = default;

void SimCluster::Log(const std::string& line) {
  log_.push_back(absl::StrCat(clock_.Now().nanos(), " ", line));
}

void SimCluster::StartWorker(const std::string& name, WorkerRoles roles) {
  roles_[name] = roles;
  SimWorkerOptions options = options_.worker;
  options.key = {name, Incarnation(next_incarnation_++)};
  options.roles = roles;
  workers_[name] = std::make_unique<SimWorker>(
      options, network_.get(), &clock_, &timers_, &hasher_, options_.tokenizer);
  cache_sent_[name] = 0;
  WorkerInfo info = workers_[name]->core().Info();
  info.control_address = name;
  absl::Status registered = router_->OnRegister(info);
  CHECK(registered.ok()) << registered.ToString();
  Log(absl::StrCat("worker ", name, " up"));
  Heartbeat(info.key);
}

void SimCluster::Heartbeat(const WorkerKey& key) {
  SimWorker* alive = worker(key.name);
  if (alive == nullptr || alive->key() != key) return;
  absl::Status known;
  if (clock_.Now() >= muted_[key.name] && !alive->frozen()) {
    SendCacheEvents(*alive);
    known = router_->OnLoad(key, alive->core().Load());
  }
  if (known.ok()) {
    After(options_.router.workers.heartbeat_interval,
          [this, key] { Heartbeat(key); });
  }
}

void SimCluster::SendCacheEvents(SimWorker& worker) {
  const CacheEventLog& log = worker.core().cache_events();
  uint64_t& sent = cache_sent_[worker.key().name];
  auto events = log.Since(sent);
  CHECK(events.has_value());
  if (events->empty()) return;
  CacheSync sync = router_->OnCacheEvents(worker.key(), *events);
  CHECK(!sync.resend_from.has_value()) << "events in order need no resync";
  sent = log.last_sequence();
}

SimClient* SimCluster::Submit(int prompt, int max_tokens,
                              absl::Duration timeout) {
  return Submit(prompt, max_tokens,
                [&](GenerateRequest& request) { request.timeout = timeout; });
}

SimClient* SimCluster::Submit(
    int prompt, int max_tokens,
    const std::function<void(GenerateRequest&)>& change) {
  auto client = std::make_unique<SimClient>();
  client->trace = [this](const std::string& line) { Log(line); };
  GenerateRequest& request = client->request;
  request.client_request_id = absl::StrCat(clients_.size());
  for (int i = 0; i < prompt; ++i) {
    request.prompt.push_back(
        static_cast<TokenId>(1 + random_.Below(SimModel::kVocabulary - 1)));
  }
  request.stop.max_tokens = max_tokens;
  request.sampling.seed = random_.Next();
  change(request);
  auto taken = router_->Submit(request, client.get());
  if (!taken.ok()) {
    refused_ = taken.status();
    Log(absl::StrCat("refused ", OutcomeName(refused_)));
    return nullptr;
  }
  request.id = *taken;
  clients_.push_back(std::move(client));
  return clients_.back().get();
}

void SimCluster::Cancel(const SimClient* client) {
  router_->Cancel(client->request.id);
}

void SimCluster::Kill(const std::string& name) {
  auto it = workers_.find(name);
  if (it == workers_.end()) return;
  Log(absl::StrCat("worker ", name, " dies"));
  WorkerKey dead = it->second->key();
  network_->Kill(name);
  graveyard_.push_back(std::move(it->second));
  workers_.erase(it);
  After(options_.latency, [this, dead] {
    router_->OnWorkerLost(dead, absl::UnavailableError("stream broke"));
  });
}

void SimCluster::Restart(const std::string& name) {
  StartWorker(name, roles_.at(name));
}

void SimCluster::Inject(const Fault& fault) {
  CHECK(fault.host == "router" || roles_.contains(fault.host)) << fault.host;
  timers_.Schedule(std::max(clock_.Now(), Instant::FromNanos(1) + fault.at),
                   [this, fault] { Begin(fault); });
}

void SimCluster::Begin(const Fault& fault) {
  SimWorker* target = worker(fault.host);
  if (target == nullptr) return;
  Log(FormatFault(fault));
  const bool ends = fault.lasts > absl::ZeroDuration();
  switch (fault.kind) {
    case FaultKind::kKill:
      Kill(fault.host);
      if (ends) After(fault.lasts, [this, fault] { Restart(fault.host); });
      break;
    case FaultKind::kFreeze:
      target->set_frozen(true);
      if (ends) {
        After(fault.lasts, [this, key = target->key()] {
          SimWorker* woken = worker(key.name);
          if (woken != nullptr && woken->key() == key) woken->set_frozen(false);
        });
      }
      break;
    case FaultKind::kStepFails:
      target->backend().FailNextStep(absl::InternalError("the step failed"));
      break;
    case FaultKind::kDrain:
      target->core().BeginDrain();
      target->Settle();
      break;
    case FaultKind::kNoHeartbeats:
      muted_[fault.host] =
          ends ? clock_.Now() + fault.lasts : Instant::Infinite();
      break;
    default:
      return;
  }
  ++faults_;
}

SimWorker* SimCluster::worker(const std::string& name) {
  auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : it->second.get();
}

std::vector<SimWorker*> SimCluster::Living() {
  std::vector<SimWorker*> living;
  for (auto& [name, worker] : workers_) living.push_back(worker.get());
  return living;
}

void SimCluster::After(absl::Duration delay, std::function<void()> action) {
  timers_.Schedule(clock_.Now() + delay, std::move(action));
}

bool SimCluster::RunUntil(const std::function<bool()>& done,
                          absl::Duration limit) {
  Instant end = clock_.Now() + limit;
  while (!done()) {
    Instant next = timers_.NextDeadline();
    if (next > end) return false;
    clock_.AdvanceTo(std::max(next, clock_.Now()));
    timers_.RunDue(clock_.Now());
    for (auto& [name, worker] : workers_) worker->Settle();
  }
  return true;
}

bool SimCluster::RunUntilIdle(absl::Duration limit) {
  return RunUntil([this] { return Idle(); }, limit);
}

bool SimCluster::Idle() const {
  for (const auto& client : clients_) {
    if (!client->ended) return false;
  }
  for (const auto& [name, worker] : workers_) {
    if (!worker->core().idle()) return false;
  }
  return router_->idle();
}

std::string SimCluster::CheckClient(const SimClient& client) const {
  const GenerateRequest& request = client.request;
  if (!client.violation.empty()) return client.violation;
  for (size_t i = 0; i < client.prompt.size(); ++i) {
    const auto before = absl::MakeConstSpan(request.prompt).subspan(0, i + 1);
    const TokenLogprobs truth =
        SimModel::Compare(SimModel::StateOf(before), request.prompt[i + 1],
                          request.prompt_logprobs);
    if (client.prompt[i].logprob != truth.logprob ||
        client.prompt[i].top != truth.top) {
      return absl::StrCat("wrong log-probability of prompt token ", i + 1);
    }
  }
  if (client.ended && client.ended->ok()) {
    if (static_cast<int>(client.finished.size()) != request.n) {
      return "ended well, but a sample did not";
    }
    if (request.prompt_logprobs >= 0 &&
        client.prompt.size() + 1 != request.prompt.size()) {
      return "ended well, but without the prompt's log-probabilities";
    }
  }
  for (const auto& [sample, tokens] : client.samples) {
    // Which answers win is another test's business.
    if (request.deferred()) continue;
    if (tokens != SimModel::Generate(request.prompt,
                                     static_cast<int>(tokens.size()),
                                     request.sampling.seed, sample)) {
      return absl::StrCat("wrong tokens in sample ", sample);
    }
    if (client.ended && client.ended->ok() &&
        static_cast<int>(tokens.size()) != request.stop.max_tokens) {
      return "ended well, but short";
    }
  }
  return "";
}

std::string SimCluster::Check() const {
  for (const auto& client : clients_) {
    if (std::string wrong = CheckClient(*client); !wrong.empty()) {
      return absl::StrCat("request ", client->request.client_request_id, ": ",
                          wrong);
    }
  }
  for (const auto& [name, worker] : workers_) {
    BlockCounts counts = worker->core().pool().counts();
    if (worker->core().idle() && !worker->core().keeps() &&
        counts.active + counts.in_transfer + counts.quarantined != 0) {
      return name + " leaks blocks";
    }
  }
  absl::Status accounts = router_->CheckAccounting();
  return accounts.ok() ? "" : std::string(accounts.message());
}

uint64_t SimCluster::LogHash() const {
  std::string all = absl::StrJoin(log_, "\n");
  return hasher_.Checksum(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(all.data()), all.size()));
}

}  // namespace penstock
