#include "tools/simulator/invariants.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// A step at its longest, and the events of the same instant.
constexpr absl::Duration kOneStep = absl::Milliseconds(10);
// Longer than a lease, a transfer's time-out and a router's patience with a
// silent worker together.
constexpr absl::Duration kPatience = absl::Seconds(40);
// How long after a fault something may fail because of it.
constexpr absl::Duration kEchoes = absl::Seconds(30);
// Checks that walk over a whole index: at one event of so many.
constexpr uint64_t kSampleEvery = 16;
// The watermark, and a page for each answer to grow into.
constexpr int kSpareBlocks = 8;

// How long a fault may hold up what a host's clock should have done.
absl::Duration Stops(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kFreeze:
    case FaultKind::kKill:
      return fault.lasts;
    case FaultKind::kClockJump:
      return absl::Seconds(std::max(-fault.amount, 0.0));
    case FaultKind::kClockDrift:
      return fault.amount < 1 ? fault.lasts * (1 / fault.amount - 1)
                              : absl::ZeroDuration();
    default:
      return absl::ZeroDuration();
  }
}

// How far a fault may put a host's clock ahead.
absl::Duration Hastes(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kClockJump:
      return absl::Seconds(std::max(fault.amount, 0.0));
    case FaultKind::kClockDrift:
      return fault.amount > 1 ? fault.lasts * (fault.amount - 1)
                              : absl::ZeroDuration();
    default:
      return absl::ZeroDuration();
  }
}

// When a fault is over. A worker that drains or was killed for good is back
// when one of `all` restarts it.
absl::Duration EndOf(const Fault& fault, const std::vector<Fault>& all) {
  switch (fault.kind) {
    case FaultKind::kStepFails:
      return fault.at;
    case FaultKind::kClockJump:
      return fault.at + absl::Seconds(std::abs(fault.amount));
    case FaultKind::kDrain:
    case FaultKind::kKill: {
      absl::Duration back = absl::InfiniteDuration();
      for (const Fault& other : all) {
        if (other.kind == FaultKind::kKill && other.host == fault.host &&
            other.at >= fault.at && other.lasts > absl::ZeroDuration()) {
          back = std::min(back, other.at + other.lasts);
        }
      }
      return back;
    }
    default:
      return fault.lasts == absl::ZeroDuration() ? absl::InfiniteDuration()
                                                 : fault.at + fault.lasts;
  }
}

bool IsRouter(const std::string& host) {
  return absl::StartsWith(host, "router");
}

std::string NameOf(const SimClient& client) {
  return absl::StrCat("request ", client.request.client_request_id);
}

}  // namespace

Invariants::Invariants(const SimPlan* plan, SimCluster* cluster)
    : plan_(plan), cluster_(cluster), last_rows_at_(cluster->now()) {
  cluster->network().on_land = [this](const WorkerKey& to, TransferId transfer,
                                      BlockRef block) {
    OnLand(to, transfer, block);
  };
  const std::vector<SimWorkerOptions>& workers = plan->cluster.workers;
  least_blocks_ = plan->cluster.worker.blocks;
  if (workers.empty()) most_decode_blocks_ = least_blocks_;
  for (const SimWorkerOptions& worker : workers) {
    least_blocks_ = std::min(least_blocks_, worker.blocks);
    if (!worker.roles.decode) continue;
    most_decode_blocks_ = std::max(most_decode_blocks_, worker.blocks);
  }
  for (const Fault& fault : plan->faults) {
    faults_.push_back({fault.at, EndOf(fault, plan->faults)});
    clocks_ahead_ += Hastes(fault);
    if (IsRouter(fault.host)) router_stopped_ += Stops(fault);
  }
}

void Invariants::Watch(const SimClient* client, const SimRequest& planned) {
  watched_.push_back(
      std::make_unique<Watched>(Watched{client, &planned, AnswerTruth(client),
                                        cluster_->now(), cluster_->now()}));
  ++open_;
}

std::optional<Violation> Invariants::AfterEvent() {
  ++event_;
  if (auto broken = CheckClients()) return broken;
  if (auto broken = CheckWorkers()) return broken;
  if (landed_.has_value()) return landed_;
  if (retried_.has_value()) return retried_;
  if (auto broken = CheckPagesInFlight()) return broken;
  for (const RouterCore* router : cluster_->LivingRouters()) {
    if (auto broken = CheckRouter(*router)) return broken;
  }
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
      if (auto broken = CheckReason(watched)) return broken;
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

std::optional<Violation> Invariants::CheckReason(const Watched& watched) const {
  const absl::Status& status = *watched.client->ended;
  if (status.ok()) return std::nullopt;
  const GenerateRequest& request = watched.client->request;
  bool earned = false;
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kCancelled:
      earned =
          cluster_->now() - watched.submitted >= watched.planned->cancel_after;
      break;
    case ErrorReason::kDeadline:
      // A router that was held up refuses by what it found when it came to.
      earned = IsLate(request, cluster_->now() - watched.submitted,
                      RouterOf(watched)) ||
               (!watched.client->admitted && Troubled());
      break;
    case ErrorReason::kKvTooSmall:
      earned = FitsNowhere(*watched.planned, least_blocks_);
      break;
    case ErrorReason::kInternal:
      earned = StepFailed();
      break;
    case ErrorReason::kQueueFull:
      earned = Troubled() || MadeRoom(watched);
      break;
    case ErrorReason::kNoWorkers:
    case ErrorReason::kWorkerLost:
    case ErrorReason::kTransferFailed:
    case ErrorReason::kDraining:
      earned = Troubled();
      break;
    default:
      break;
  }
  if (earned) return std::nullopt;
  return Violation{
      "errors are earned",
      absl::StrCat(NameOf(*watched.client), " ended with ", status.ToString())};
}

std::optional<Violation> Invariants::CheckRefusal(
    const SimRequest& planned, const std::string& name,
    const absl::Status& status) const {
  const RouterCore* router =
      cluster_->router_alive(name) ? &cluster_->router(name) : nullptr;
  bool earned = false;
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kQueueFull:
      // Others fill the queue, and what it waits for.
      earned = router != nullptr &&
               (router->queued() >= plan_->cluster.router.max_queued ||
                WaitsTooLong(planned, *router)) &&
               (router->running() > 0 || Troubled());
      break;
    case ErrorReason::kKvTooSmall:
      // A large worker may be away.
      earned = FitsNowhere(planned,
                           Troubled() ? least_blocks_ : most_decode_blocks_);
      break;
    case ErrorReason::kNoWorkers:
    case ErrorReason::kDraining:
      earned = Troubled();
      break;
    case ErrorReason::kDeadline: {
      GenerateRequest request;
      request.stop.max_tokens = planned.max_tokens;
      FillRequest(planned, request);
      earned = router != nullptr &&
               IsLate(request, router->PredictedWait(request), router);
      break;
    }
    default:
      // Nobody was there to refuse it.
      earned = router == nullptr;
      break;
  }
  if (earned) return std::nullopt;
  return Violation{"errors are earned",
                   absl::StrCat("a request was refused: ", status.ToString())};
}

const RouterCore* Invariants::RouterOf(const Watched& watched) const {
  const std::string& name = watched.client->router;
  if (watched.client->admitted || !cluster_->router_alive(name)) return nullptr;
  return &cluster_->router(name);
}

// Whether nothing can come of it any more `since` it came: of what has not
// begun its router knows the least that it takes.
bool Invariants::IsLate(const GenerateRequest& request, absl::Duration since,
                        const RouterCore* router) const {
  const absl::Duration left =
      std::min(request.timeout, plan_->cluster.router.max_timeout) - since -
      clocks_ahead_;
  return left <= (router == nullptr ? absl::ZeroDuration()
                                    : router->PredictedService(request));
}

// A full queue is no fault.
void Invariants::OnRetry(RequestId request, ErrorReason reason) {
  if (reason == ErrorReason::kQueueFull || Troubled() || retried_.has_value()) {
    return;
  }
  retried_ = Violation{
      "attempts end for a reason",
      absl::StrCat("an attempt at request ", request.value(), " ended with ",
                   ReasonName(reason), " and no fault")};
}

// Of a full queue the lowest priority is the first to go.
bool Invariants::MadeRoom(const Watched& watched) const {
  return std::any_of(watched_.begin(), watched_.end(), [&](const auto& other) {
    return other->planned->priority > watched.planned->priority;
  });
}

bool Invariants::WaitsTooLong(const SimRequest& planned,
                              const RouterCore& router) const {
  const RouterCore::Options& options = plan_->cluster.router;
  GenerateRequest request;
  request.priority = planned.priority;
  return router.PredictedWait(request) >
         std::min(
             {planned.timeout, options.max_timeout, options.max_queue_age});
}

bool Invariants::FitsNowhere(const SimRequest& planned, int blocks) const {
  const int answers =
      std::max({planned.n, planned.best_of, planned.beam_width});
  return blocks < kSpareBlocks +
                      answers * BlocksFor(planned.prompt + planned.max_tokens);
}

uint64_t Invariants::Draw() const {
  const uint64_t x = event_ * 0x9e3779b97f4a7c15;
  return x ^ (x >> 29);
}

bool Invariants::StepFailed() const {
  const absl::Duration now = cluster_->now() - cluster_->start();
  return std::any_of(plan_->faults.begin(), plan_->faults.end(),
                     [now](const Fault& fault) {
                       return fault.kind == FaultKind::kStepFails &&
                              !IsRouter(fault.host) && fault.at <= now;
                     });
}

absl::Duration Invariants::CalmSince() const {
  const absl::Duration now = cluster_->now() - cluster_->start();
  absl::Duration since;
  for (const Window& fault : faults_) {
    if (fault.from > now) continue;
    since =
        std::max(since, fault.to <= now ? fault.to : absl::InfiniteDuration());
  }
  return since;
}

bool Invariants::Troubled() const {
  const absl::Duration now = cluster_->now() - cluster_->start();
  return std::any_of(faults_.begin(), faults_.end(), [&](const Window& fault) {
    return fault.from <= now && fault.to >= now - kEchoes;
  });
}

std::optional<Violation> Invariants::CheckRouter(
    const RouterCore& router) const {
  const RouterCore::Options& options = plan_->cluster.router;
  if (router.running() > options.max_running ||
      router.queued() > options.max_queued) {
    return Violation{"queues are bounded",
                     absl::StrCat("the router runs ", router.running(),
                                  " requests and queues ", router.queued())};
  }
  if (!Sampled(kSampleEvery)) return std::nullopt;
  if (absl::Status sums = router.CheckAccounting(); !sums.ok()) {
    return Violation{"the router's accounts add up",
                     std::string(sums.message())};
  }
  size_t blocks = 0;
  for (const auto& [name, worker] : router.workers().view().workers) {
    blocks += static_cast<size_t>(worker.info.total_blocks);
  }
  const PrefixIndex& index = router.workers().prefixes();
  if (index.memberships() > blocks) {
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
    const Instant shown = watched.client->request.deferred()
                              ? std::max(watched.last_progress, last_rows_at_)
                              : watched.last_progress;
    const absl::Duration last =
        std::max(shown - cluster_->start(), CalmSince());
    if (cluster_->now() - cluster_->start() - last <= kPatience) {
      return std::nullopt;
    }
    return Violation{"the oldest progresses",
                     absl::StrCat(NameOf(*watched.client), " stands still")};
  }
  return std::nullopt;
}

std::optional<Violation> Invariants::AtEnd() {
  if (auto broken = AfterEvent()) return broken;
  for (SimWorker* worker : cluster_->Living()) {
    const BlockCounts counts = worker->core().pool().counts();
    if (auto broken = CheckTables(*worker)) return broken;
    if (counts.active + counts.in_transfer + counts.quarantined != 0) {
      return Violation{
          "nothing is left",
          absl::StrCat(worker->key().name, " has ", counts.active, " active, ",
                       counts.in_transfer, " moving and ", counts.quarantined,
                       " quarantined pages")};
    }
  }
  for (const RouterCore* router : cluster_->LivingRouters()) {
    if (absl::Status sums = router->CheckAccounting(); !sums.ok()) {
      return Violation{"the router's accounts add up",
                       std::string(sums.message())};
    }
    if (absl::Status load = router->workers().CheckIdle(); !load.ok()) {
      return Violation{"load returns to zero", std::string(load.message())};
    }
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
