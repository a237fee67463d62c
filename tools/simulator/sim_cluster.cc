#include "tools/simulator/sim_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

constexpr char kRouter[] = "router";

CostModel DefaultCost() {
  auto cost = CostModel::Create({});
  CHECK(cost.ok());
  return *cost;
}

}  // namespace

std::vector<SimWorkerOptions> WorkersOf(const SimClusterOptions& options) {
  if (!options.workers.empty()) return options.workers;
  std::vector<SimWorkerOptions> workers;
  auto add = [&](std::string name, WorkerRoles roles) {
    workers.push_back(options.worker);
    workers.back().key.name = std::move(name);
    workers.back().roles = roles;
  };
  if (options.both_roles) {
    add("both", {true, true});
    return workers;
  }
  for (int i = 0; i < options.prefill_workers; ++i) {
    add(absl::StrCat("prefill", i), {true, false});
  }
  for (int i = 0; i < options.decode_workers; ++i) {
    add(absl::StrCat("decode", i), {false, true});
  }
  return workers;
}

std::vector<std::string> RoutersOf(const SimClusterOptions& options) {
  std::vector<std::string> names = {kRouter};
  for (int i = 1; i < options.routers; ++i) {
    names.push_back(absl::StrCat(kRouter, i));
  }
  return names;
}

void SimCluster::Process::Report() {
  for (const auto& link : links) link->Report();
}

void SimCluster::Process::SetMuted(bool muted) {
  for (const auto& link : links) link->set_muted(muted);
}

SimCluster::SimCluster(SimClusterOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      log_(&hasher_, options_.log_lines),
      cost_(DefaultCost()),
      policy_(std::make_unique<PlacementPolicy>(
          PolicyOptions{.spill_prefill = options_.spill_prefill}, cost_)),
      network_(std::make_unique<SimNetwork>(
          &clock_, &timers_, &hasher_, SimModel::Layout(), options_.latency)),
      router_names_(RoutersOf(options_)),
      entry_(kRouter) {
  log_.on_line = options_.on_line;
  if (options_.tokenizer == nullptr) options_.tokenizer = &tokenizer_;
  if (options_.probe == nullptr) options_.probe = &probe_;
  options_.router.workers.content = ContentId(42);
  if (options_.log) {
    network_->trace = [this](const std::string& line) { Log(line); };
  }
  network_->set_bandwidth(options_.bytes_per_second);
  network_->set_page_bytes(options_.page_bytes);
  network_->Seed(random_.Next());
  for (const std::string& name : router_names_) {
    AddHost(name);
    StartRouter(name);
  }
  for (const SimWorkerOptions& worker : WorkersOf(options_)) {
    const std::string& name = worker.key.name;
    names_.push_back(name);
    CHECK(worker_options_.emplace(name, worker).second) << name << " twice";
    AddHost(name);
    StartWorker(worker);
  }
  CHECK(RunUntil([this] { return KnowsAllWorkers(); }, absl::Seconds(10)));
  start_ = clock_.Now();
}

SimCluster::~SimCluster() = default;

void SimCluster::Log(const std::string& line) {
  if (options_.log) log_.Add(clock_.Now(), line);
}

void SimCluster::AddHost(const std::string& name) {
  // Clocks are days apart.
  const Instant begin =
      Instant::FromNanos(1 + static_cast<int64_t>(random_.Below(1ull << 50)));
  hosts_[name] = std::make_unique<SimHost>(name, &clock_, &timers_, begin);
}

void SimCluster::StartRouter(const std::string& name) {
  SimHost& host = *hosts_.at(name);
  host.Boot([] {});
  SimRouter::Ports ports;
  ports.network = network_.get();
  ports.host = &host;
  ports.hasher = &hasher_;
  ports.policy = policy_.get();
  if (options_.any_place) ports.policy = &any_place_;
  ports.probe = options_.probe;
  ports.find = [this](const std::string& name) { return worker(name); };
  routers_[name] = std::make_unique<SimRouter>(
      options_.router, WorkerKey{name, Incarnation(next_incarnation_++)},
      random_.Next(), ports);
  host.Rearm();
}

void SimCluster::StartWorker(const SimWorkerOptions& options) {
  const std::string& name = options.key.name;
  SimHost& host = *hosts_.at(name);
  Process& process = workers_[name];
  host.Boot([&process] { process.worker->Settle(); });
  SimWorkerOptions made = options;
  made.key.incarnation = Incarnation(next_incarnation_++);
  process.worker = std::make_unique<SimWorker>(
      made, network_.get(), &host.clock(), &host.timers(), &hasher_,
      options_.tokenizer, &host, &tiers_[name]);
  WorkerInfo info = process.worker->core().Info();
  info.control_address = name;
  for (const std::string& router : router_names_) {
    auto find = [this, router]() -> SimRegistrar* {
      auto it = routers_.find(router);
      return it == routers_.end() ? nullptr : &it->second->registrar();
    };
    process.links.push_back(std::make_unique<SimRouterLink>(
        router, info,
        SimRouterLink::Ports{&process.worker->core(), network_.get(),
                             &host.clock(), &host.timers(), std::move(find),
                             [&process] { process.Report(); }}));
  }
  Log(absl::StrCat("worker ", name, " up"));
  host.Rearm();
}

bool SimCluster::KnowsAllWorkers() const {
  return std::all_of(routers_.begin(), routers_.end(), [&](const auto& router) {
    const ClusterView& view = router.second->core().workers().view();
    return view.workers.size() == names_.size() &&
           std::all_of(view.workers.begin(), view.workers.end(),
                       [](const auto& named) { return named.second.ready(); });
  });
}

void SimCluster::UseRouter(const std::string& name) {
  CHECK(std::find(router_names_.begin(), router_names_.end(), name) !=
        router_names_.end())
      << name;
  entry_ = name;
}

std::vector<RouterCore*> SimCluster::LivingRouters() {
  std::vector<RouterCore*> living;
  for (auto& [name, router] : routers_) living.push_back(&router->core());
  return living;
}

SimClient* SimCluster::Submit(int prompt, int max_tokens,
                              absl::Duration timeout) {
  return Submit(prompt, max_tokens,
                [&](GenerateRequest& request) { request.timeout = timeout; });
}

SimClient* SimCluster::Submit(
    int prompt, int max_tokens,
    const std::function<void(GenerateRequest&)>& change) {
  auto owned = std::make_unique<SimClient>();
  SimClient* client = owned.get();
  client->trace = [this](const std::string& line) { Log(line); };
  client->on_end = [this] { --open_clients_; };
  GenerateRequest& request = client->request;
  request.client_request_id = absl::StrCat(clients_.size());
  for (int i = 0; i < prompt; ++i) {
    request.prompt.push_back(
        static_cast<TokenId>(1 + random_.Below(SimModel::kVocabulary - 1)));
  }
  request.stop.max_tokens = max_tokens;
  request.sampling.seed = random_.Next();
  change(request);
  refused_ = absl::UnavailableError("the router is dead");
  client->router = entry_;
  bool handled = false;
  SimHost& host = *hosts_.at(entry_);
  // Not earlier than the frames that tell of its end.
  ++open_clients_;
  clients_.push_back(std::move(owned));
  auto submit = [this, client] {
    auto taken = router(client->router).Submit(client->request, client);
    refused_ = taken.status();
    if (taken.ok()) client->request.id = *taken;
  };
  if (router_alive(entry_) && host.frozen()) {
    host.Handle([this, client, submit] {
      submit();
      if (!refused_.ok()) client->OnFinished(refused_);
    });
    return client;
  }
  if (router_alive(entry_)) {
    host.Run(submit);
    handled = refused_.ok();
  }
  if (handled) return client;
  Log(absl::StrCat("refused ", OutcomeName(refused_)));
  --open_clients_;
  clients_.pop_back();
  return nullptr;
}

void SimCluster::Cancel(const SimClient* client) {
  hosts_.at(client->router)->Handle([this, client] {
    router(client->router).Cancel(client->request.id);
  });
}

void SimCluster::Kill(const std::string& host) {
  if (!worker_options_.contains(host)) {
    KillRouter(host);
    return;
  }
  auto it = workers_.find(host);
  if (it == workers_.end()) return;
  Log(absl::StrCat("worker ", host, " dies"));
  network_->Kill(host);
  it->second.timers = hosts_.at(host)->Halt();
  dead_workers_.push_back(std::move(it->second));
  workers_.erase(it);
}

void SimCluster::KillRouter(const std::string& name) {
  auto it = routers_.find(name);
  if (it == routers_.end()) return;
  Log(absl::StrCat(name, " dies"));
  network_->Kill(name);
  dead_routers_.push_back({hosts_.at(name)->Halt(), std::move(it->second)});
  routers_.erase(it);
  for (const auto& client : clients_) {
    if (client->ended.has_value() || client->router != name) continue;
    client->OnFinished(absl::UnavailableError("connection to the router lost"));
  }
}

void SimCluster::Restart(const std::string& host) {
  if (!worker_options_.contains(host)) {
    if (!router_alive(host)) StartRouter(host);
  } else if (!workers_.contains(host)) {
    StartWorker(worker_options_.at(host));
  }
}

SimWorker* SimCluster::worker(const std::string& name) {
  auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : it->second.worker.get();
}

std::vector<SimWorker*> SimCluster::Living() {
  std::vector<SimWorker*> living;
  for (auto& [name, process] : workers_) {
    living.push_back(process.worker.get());
  }
  return living;
}

int64_t SimCluster::faults() const {
  int64_t faults = 0;
  for (const auto& [kind, count] : faults_by_kind()) faults += count;
  return faults;
}

std::map<FaultKind, int64_t> SimCluster::faults_by_kind() const {
  std::map<FaultKind, int64_t> faults = faults_;
  for (const auto& [kind, count] : network_->strikes()) faults[kind] += count;
  return faults;
}

void SimCluster::After(absl::Duration delay, std::function<void()> action) {
  timers_.Schedule(clock_.Now() + delay, std::move(action));
}

void SimCluster::Step(Instant when) {
  clock_.AdvanceTo(std::max(when, clock_.Now()));
  dead_workers_.clear();
  dead_routers_.clear();
  timers_.RunOne(clock_.Now());
  ++events_;
  if (after_event) after_event();
}

bool SimCluster::RunUntil(const std::function<bool()>& done,
                          absl::Duration limit) {
  const Instant end = clock_.Now() + limit;
  while (!done()) {
    const Instant next = timers_.NextDeadline();
    if (next > end) {
      if (end != Instant::Infinite()) clock_.AdvanceTo(end);
      return false;
    }
    Step(next);
  }
  return true;
}

bool SimCluster::RunUntilIdle(absl::Duration limit) {
  return RunUntil([this] { return Idle(); }, limit);
}

bool SimCluster::Idle() const {
  if (open_clients_ > 0 || routers_.empty()) return false;
  for (const auto& [name, router] : routers_) {
    if (!router->core().idle()) return false;
  }
  for (const auto& [name, process] : workers_) {
    if (!process.worker->core().idle()) return false;
  }
  return true;
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
    if (tokens !=
        SimModel::Answer(request, static_cast<int>(tokens.size()), sample)) {
      return absl::StrCat("wrong tokens in sample ", sample);
    }
    const auto finish = client.finished.find(sample);
    const bool stopped = !request.stop.stop_strings.empty() &&
                         finish != client.finished.end() &&
                         finish->second == FinishReason::kStop;
    if (client.ended && client.ended->ok() && !stopped &&
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
  for (const auto& [name, process] : workers_) {
    SimWorker& worker = *process.worker;
    const BlockCounts counts = std::as_const(worker.core()).pool().counts();
    if (worker.core().idle() && !worker.core().keeps() &&
        counts.active + counts.in_transfer + counts.quarantined !=
            worker.taken_blocks()) {
      return name + " leaks blocks";
    }
  }
  for (const auto& [name, router] : routers_) {
    absl::Status accounts = router->core().CheckAccounting();
    if (!accounts.ok()) return absl::StrCat(name, ": ", accounts.message());
  }
  return "";
}

}  // namespace penstock
