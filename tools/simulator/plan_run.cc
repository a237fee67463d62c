#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "tools/simulator/invariants.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {
namespace {

constexpr size_t kLastEvents = 40;

// Prompt tokens come from seeds alone; no stop token among them.
void AppendTokens(uint64_t seed, int count, std::vector<TokenId>& tokens) {
  SeededRandom random(seed);
  for (int i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<TokenId>(1 + random.Below(SimModel::kVocabulary - 1)));
  }
}

struct RetryProbe : NullRouterProbe {
  void RequestRetried(RequestId request, ErrorReason reason) override {
    if (on_retry) on_retry(request, reason);
  }
  std::function<void(RequestId, ErrorReason)> on_retry;
};

SimClusterOptions Listening(SimClusterOptions options, RouterProbe* probe) {
  options.probe = probe;
  return options;
}

class PlanRun {
 public:
  explicit PlanRun(const SimPlan& plan)
      : plan_(plan),
        cluster_(Listening(plan.cluster, &probe_)),
        invariants_(&plan_, &cluster_) {
    probe_.on_retry = [this](RequestId request, ErrorReason reason) {
      invariants_.OnRetry(request, reason);
    };
    cluster_.after_event = [this] { Check(); };
  }

  SimReport Run();

 private:
  void Schedule();
  void Submit(const SimRequest& planned);
  void Check();
  bool RunTo(const std::function<bool()>& done, absl::Duration limit);
  void Break(const Violation& violation);
  void Count();

  const SimPlan& plan_;
  RetryProbe probe_;
  SimCluster cluster_;
  Invariants invariants_;
  SimReport report_;
  std::vector<const SimClient*> clients_;
};

void PlanRun::Schedule() {
  for (const Fault& fault : plan_.faults) cluster_.Inject(fault);
  for (const SimRequest& planned : plan_.requests) {
    cluster_.After(planned.at, [this, &planned] { Submit(planned); });
  }
}

void PlanRun::Submit(const SimRequest& planned) {
  ++report_.requests;
  // As a client's choice does not depend on the others.
  const std::vector<std::string> routers = RoutersOf(plan_.cluster);
  const std::string& router = routers[planned.seed % routers.size()];
  cluster_.UseRouter(router);
  const SimClient* client = cluster_.Submit(
      planned.prompt, planned.max_tokens,
      [&](GenerateRequest& request) { FillRequest(planned, request); });
  if (client == nullptr) {
    ++report_.refused;
    auto unearned =
        invariants_.CheckRefusal(planned, router, cluster_.refused());
    if (unearned && report_.ok()) Break(*unearned);
    return;
  }
  clients_.push_back(client);
  invariants_.Watch(client, planned);
  if (planned.cancel_after == absl::InfiniteDuration()) return;
  cluster_.After(planned.cancel_after,
                 [this, client] { cluster_.Cancel(client); });
}

void PlanRun::Break(const Violation& violation) {
  report_.promise = violation.promise;
  report_.violation =
      absl::StrCat(violation.what, " at ",
                   absl::FormatDuration(cluster_.now() - cluster_.start()));
}

void PlanRun::Check() {
  if (!report_.ok()) return;
  if (auto broken = invariants_.AfterEvent()) Break(*broken);
}

bool PlanRun::RunTo(const std::function<bool()>& done, absl::Duration limit) {
  const bool reached =
      cluster_.RunUntil([&] { return !report_.ok() || done(); }, limit);
  return reached && report_.ok();
}

void PlanRun::Count() {
  for (const SimClient* client : clients_) {
    for (const auto& [sample, tokens] : client->samples) {
      report_.tokens += static_cast<int64_t>(tokens.size());
    }
    if (!client->ended) continue;
    ++(client->ended->ok() ? report_.finished : report_.failed);
    if (!client->ended->ok()) {
      ++report_.failures[std::string(OutcomeName(*client->ended))];
    }
  }
  report_.tokens_computed = invariants_.rows_computed();
  report_.events = cluster_.events();
  report_.faults = cluster_.faults();
  report_.faults_by_kind = cluster_.faults_by_kind();
  report_.virtual_time = cluster_.now() - cluster_.start();
  report_.log_hash = cluster_.LogHash();
}

SimReport PlanRun::Run() {
  absl::Duration busy;
  for (const SimRequest& planned : plan_.requests) {
    busy = std::max(busy, planned.at);
  }
  for (const Fault& fault : plan_.faults) {
    busy = std::max(busy, fault.at + fault.lasts);
  }
  Schedule();
  RunTo([] { return false; }, busy + absl::Milliseconds(1));
  if (report_.ok() &&
      !RunTo([this] { return cluster_.Idle(); }, plan_.drain_bound) &&
      report_.ok()) {
    Break({"everything drains",
           absl::StrCat("not idle after ",
                        absl::FormatDuration(plan_.drain_bound),
                        " without faults; open: ", invariants_.OpenRequests(),
                        invariants_.Workers())});
  }
  // What is kept for a next attempt goes when its lease ends.
  if (report_.ok()) {
    absl::Duration lease = plan_.cluster.worker.handoff.lease;
    for (const SimWorkerOptions& worker : plan_.cluster.workers) {
      lease = std::max(lease, worker.handoff.lease);
    }
    RunTo([] { return false; }, lease + absl::Seconds(5));
  }
  if (report_.ok()) {
    if (auto broken = invariants_.AtEnd()) Break(*broken);
  }
  Count();
  const std::vector<std::string> log = cluster_.log();
  const size_t kept = report_.ok() ? 0 : std::min(log.size(), kLastEvents);
  report_.last_events.assign(log.end() - static_cast<int64_t>(kept), log.end());
  return std::move(report_);
}

}  // namespace

void FillRequest(const SimRequest& planned, GenerateRequest& request) {
  constexpr uint64_t kPrefixSeeds = uint64_t{1} << 40;
  request.prompt.clear();
  const int shared = std::min(planned.shared, planned.prompt);
  AppendTokens(kPrefixSeeds + planned.prefix, shared, request.prompt);
  AppendTokens(planned.seed, planned.prompt - shared, request.prompt);
  request.sampling.seed = planned.seed;
  request.sampling.temperature = static_cast<float>(planned.temperature);
  request.sampling.logprobs = planned.logprobs;
  if (planned.penalties) {
    request.sampling.penalties = {
        .repetition = 1.1f, .frequency = 0.5f, .presence = 0.25f};
  }
  request.sampling.mirostat.on = planned.mirostat;
  if (!planned.stop.empty()) request.stop.stop_strings = {planned.stop};
  request.n = planned.n;
  request.best_of = planned.best_of;
  request.beam.width = planned.beam_width;
  request.prompt_logprobs = planned.prompt_logprobs;
  request.priority = planned.priority;
  request.timeout = planned.timeout;
}

SimReport RunPlan(const SimPlan& plan,
                  const std::function<void(const std::string& line)>& trace) {
  if (!trace) return PlanRun(plan).Run();
  SimPlan traced = plan;
  traced.cluster.on_line = trace;
  return PlanRun(traced).Run();
}

}  // namespace penstock
