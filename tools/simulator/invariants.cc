#include "tools/simulator/invariants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// A step at its longest, and the events of the same instant.
constexpr absl::Duration kOneStep = absl::Milliseconds(10);
// Longer than a lease, a transfer's time-out and a router's patience with a
// silent worker together.
constexpr absl::Duration kPatience = absl::Seconds(40);
// Checks that walk over a whole index: at one event of so many.
constexpr uint64_t kSampleEvery = 16;

uint64_t Mix(uint64_t x) {
  x *= 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}

// How long a fault may hold up what a host's clock should have done.
absl::Duration Stops(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kFreeze:
    case FaultKind::kKill:
      return fault.lasts;
    case FaultKind::kClockDrift:
      return fault.amount < 1 ? fault.lasts * (1 / fault.amount - 1)
                              : absl::ZeroDuration();
    default:
      return absl::ZeroDuration();
  }
}

bool HappensOnce(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
    case FaultKind::kStepFails:
    case FaultKind::kClockJump:
    case FaultKind::kDrain:
      return true;
    default:
      return false;
  }
}

std::string NameOf(const SimClient& client) {
  return absl::StrCat("request ", client.request.client_request_id);
}

}  // namespace

Invariants::Invariants(const SimPlan* plan, SimCluster* cluster)
    : plan_(plan), cluster_(cluster), last_rows_at_(cluster->now()) {
  for (const Fault& fault : plan->faults) {
    const bool forever =
        fault.lasts == absl::ZeroDuration() && !HappensOnce(fault.kind);
    faults_.push_back({fault.at, forever ? absl::InfiniteDuration()
                                         : fault.at + fault.lasts});
    if (fault.host == "router") router_stopped_ += Stops(fault);
  }
}

void Invariants::Watch(const SimClient* client) {
  watched_.push_back(std::make_unique<Watched>(
      Watched{client, AnswerTruth(client), cluster_->now(), cluster_->now()}));
  ++open_;
}

std::optional<Violation> Invariants::AfterEvent() {
  ++event_;
  if (auto broken = CheckClients()) return broken;
  if (auto broken = CheckWorkers()) return broken;
  if (auto broken = CheckRouter()) return broken;
  return CheckProgress();
}

std::optional<Violation> Invariants::CheckClients() {
  while (first_open_ < watched_.size() && watched_[first_open_]->closed) {
    ++first_open_;
  }
  for (size_t i = first_open_; i < watched_.size(); ++i) {
    Watched& watched = *watched_[i];
    if (watched.closed && watched.heard == watched.client->heard) continue;
    if (auto late = CheckDeadline(watched)) return late;
    if (watched.heard == watched.client->heard) continue;
    watched.heard = watched.client->heard;
    watched.last_progress = cluster_->now();
    if (!watched.client->violation.empty()) {
      return Violation{"each token and each end once",
                       absl::StrCat(NameOf(*watched.client), ": ",
                                    watched.client->violation)};
    }
    std::string wrong = watched.truth.CheckNew();
    if (wrong.empty() && watched.client->ended && !watched.closed) {
      watched.closed = true;
      --open_;
      wrong = watched.truth.CheckEnd();
    }
    if (!wrong.empty()) {
      return Violation{"tokens are true",
                       absl::StrCat(NameOf(*watched.client), ": ", wrong)};
    }
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::CheckDeadline(
    const Watched& watched) const {
  if (watched.closed) return std::nullopt;
  const absl::Duration allowed = std::min(watched.client->request.timeout,
                                          plan_->cluster.router.max_timeout) +
                                 router_stopped_ + kOneStep;
  const absl::Duration passed = cluster_->now() - watched.submitted;
  if (passed <= allowed) return std::nullopt;
  return Violation{
      "ends by its deadline",
      absl::StrCat(NameOf(*watched.client), " is still there ",
                   absl::FormatDuration(passed), " after it came")};
}

std::optional<Violation> Invariants::CheckWorkers() {
  int64_t rows = 0;
  const std::vector<SimWorker*> workers = cluster_->Living();
  for (SimWorker* worker : workers) {
    const BlockPool& pool = worker->core().pool();
    const std::string& name = worker->key().name;
    if (pool.counts().total() != pool.total()) {
      return Violation{"pages add up",
                       absl::StrCat(name, " counts ", pool.counts().total(),
                                    " of ", pool.total(), " pages")};
    }
    rows += worker->backend().rows_computed();
  }
  if (rows != rows_) last_rows_at_ = cluster_->now();
  rows_ = rows;
  if (workers.empty()) return std::nullopt;
  SimWorker& chosen = *workers[Mix(event_) % workers.size()];
  const SimWorkerOptions& limits = plan_->cluster.worker;
  const WorkerLoad load = chosen.core().Load();
  const int bound =
      limits.engine.max_waiting + 2 * limits.handoff.max_transfers;
  if (load.queued_requests > bound) {
    return Violation{"queues are bounded",
                     absl::StrCat(chosen.key().name, " has ",
                                  load.queued_requests, " requests waiting")};
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::CheckRouter() const {
  const RouterCore& router = cluster_->router();
  const RouterCore::Options& options = plan_->cluster.router;
  if (router.running() > options.max_running ||
      router.queued() > options.max_queued) {
    return Violation{"queues are bounded",
                     absl::StrCat("the router runs ", router.running(),
                                  " requests and queues ", router.queued())};
  }
  if (Mix(event_) % kSampleEvery != 0) return std::nullopt;
  if (absl::Status sums = router.CheckAccounting(); !sums.ok()) {
    return Violation{"the router's accounts add up",
                     std::string(sums.message())};
  }
  size_t blocks = 0;
  for (const WorkerView& worker : router.workers().view().workers) {
    blocks += static_cast<size_t>(worker.info.total_blocks);
  }
  const PrefixIndex& index = router.workers().prefixes();
  if (index.memberships() > blocks ||
      index.distinct_blocks() > index.memberships()) {
    return Violation{"indices are bounded",
                     absl::StrCat("the router knows ", index.memberships(),
                                  " pages of ", blocks)};
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::CheckProgress() {
  for (size_t i = first_open_; i < watched_.size(); ++i) {
    const Watched& watched = *watched_[i];
    if (watched.closed || !watched.client->admitted) continue;
    // Deferred answers show nothing before their end.
    const Instant last = watched.client->request.deferred()
                             ? std::max(watched.last_progress, last_rows_at_)
                             : watched.last_progress;
    if (cluster_->now() - last <= kPatience || !Calm(last)) {
      return std::nullopt;
    }
    return Violation{"the oldest progresses",
                     absl::StrCat(NameOf(*watched.client), " stands still")};
  }
  return std::nullopt;
}

bool Invariants::Calm(Instant since) const {
  const absl::Duration from = since - Instant() - kPatience;
  const absl::Duration now = cluster_->now() - Instant();
  return std::none_of(faults_.begin(), faults_.end(), [&](const Window& fault) {
    return fault.from <= now && fault.to >= from;
  });
}

std::optional<Violation> Invariants::AtEnd() {
  if (auto broken = AfterEvent()) return broken;
  for (SimWorker* worker : cluster_->Living()) {
    const BlockCounts counts = worker->core().pool().counts();
    if (counts.active + counts.in_transfer + counts.quarantined != 0) {
      return Violation{
          "nothing is left",
          absl::StrCat(worker->key().name, " has ", counts.active, " active, ",
                       counts.in_transfer, " moving and ", counts.quarantined,
                       " quarantined pages")};
    }
  }
  if (absl::Status sums = cluster_->router().CheckAccounting(); !sums.ok()) {
    return Violation{"the router's accounts add up",
                     std::string(sums.message())};
  }
  if (absl::Status load = cluster_->router().workers().CheckIdle();
      !load.ok()) {
    return Violation{"load returns to zero", std::string(load.message())};
  }
  return std::nullopt;
}

std::string Invariants::OpenRequests() const {
  std::string names;
  for (const auto& watched : watched_) {
    if (!watched->closed) {
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      NameOf(*watched->client));
    }
  }
  return names;
}

}  // namespace penstock
