#include "router/core/router_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

absl::Status Positive(absl::string_view name, bool ok) {
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("router option ", name, " must be positive"));
}

absl::Status Validate(const RouterCore::Options& o) {
  RETURN_IF_ERROR(Positive("max_running", o.max_running > 0));
  RETURN_IF_ERROR(Positive("max_attempts", o.max_attempts > 0));
  RETURN_IF_ERROR(Positive("retry_floor", o.retry_floor > 0));
  RETURN_IF_ERROR(
      Positive("max_timeout", o.max_timeout > absl::ZeroDuration() &&
                                  o.max_timeout != absl::InfiniteDuration()));
  RETURN_IF_ERROR(Positive("heartbeat_interval", o.workers.heartbeat_interval >
                                                     absl::ZeroDuration()));
  RETURN_IF_ERROR(Positive("suspect_after", o.workers.suspect_after > 0));
  RETURN_IF_ERROR(Positive("lost_after less suspect_after",
                           o.workers.lost_after > o.workers.suspect_after));
  RETURN_IF_ERROR(
      Positive("stalled_after less suspect_after",
               o.workers.stalled_after >
                   o.workers.suspect_after * o.workers.heartbeat_interval));
  RETURN_IF_ERROR(Positive("workers.content", bool{o.workers.content}));
  if (!(o.retry_share >= 0) || o.retry_pause < absl::ZeroDuration() ||
      o.worker_patience < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "router options retry_share, retry_pause and worker_patience must not "
        "be negative");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RouterCore>> RouterCore::Create(
    const Options& options, const Ports& ports) {
  CHECK(ports.clock && ports.timers && ports.random && ports.hasher &&
        ports.policy && ports.legs && ports.probe);
  RETURN_IF_ERROR(Validate(options));
  RETURN_IF_ERROR(AdmissionQueue::Validate(QueueOptions(options)));
  return std::unique_ptr<RouterCore>(new RouterCore(options, ports));
}

RouterCore::RouterCore(const Options& options, const Ports& ports)
    : options_(options),
      ports_(ports),
      workers_(
          options.workers, *ports.clock, *ports.timers,
          [this](const WorkerKey& worker, const absl::Status& why) {
            HandleLost(worker, why);
          },
          [this](const WorkerKey& worker) { OnSuspect(worker); }),
      journal_(options.decision_sample, ports.clock, ports.probe),
      admission_(QueueOptions(options)),
      guard_(options.guard) {}

RouterCore::~RouterCore() {
  ports_.timers->Cancel(hope_timer_);
  ports_.timers->Cancel(ending_timer_);
  ports_.timers->Cancel(queue_timer_);
  ports_.timers->Cancel(guard_timer_);
  // In any order: all go.
  for (auto& [id, request] : requests_) {
    ports_.timers->Cancel(request->deadline_timer);
    ports_.timers->Cancel(request->wait_timer);
  }
}

// --- workers ----------------------------------------------------------------

absl::Status RouterCore::OnRegister(const WorkerInfo& info) {
  absl::Status status = workers_.Register(info);
  if (!status.ok()) {
    Log(LogLevel::kWarning, "worker refused",
        {{"worker", info.key.name}, {"why", std::string(status.message())}});
    return status;
  }
  ports_.probe->WorkerRegistered(info);
  guard_.Add(info.key, info.roles);
  FollowGuard();
  if (info.roles.decode) RaiseHope();
  return status;
}

absl::Status RouterCore::OnLoad(const WorkerKey& worker,
                                const WorkerLoad& load) {
  const WorkerView* view = workers_.Find(worker);
  const WorkerHealth before =
      view != nullptr ? view->reported.health : WorkerHealth::kLoading;
  RETURN_IF_ERROR(workers_.Report(worker, load));
  const WorkerHealth now = workers_.Find(worker)->reported.health;
  if (now != before) OnHealthChanged(worker, now);
  Pump();
  return absl::OkStatus();
}

void RouterCore::OnHealthChanged(const WorkerKey& worker, WorkerHealth health) {
  ports_.probe->WorkerHealthChanged(worker, health);
  RaiseHope();
  if (health == WorkerHealth::kDraining) {
    MoveWaitingLegs(worker,
                    MakeError(ErrorReason::kDraining, "the worker drains"));
  }
}

// It may be gone: what it has not begun with need not wait to find out.
void RouterCore::OnSuspect(const WorkerKey& worker) {
  MoveWaitingLegs(worker, MakeError(ErrorReason::kWorkerLost,
                                    absl::StrCat("worker ", worker.name,
                                                 " does not report")));
  Pump();
}

CacheSync RouterCore::OnCacheEvents(const WorkerKey& worker,
                                    absl::Span<const CacheEvent> events) {
  CacheSync sync = workers_.ApplyEvents(worker, events);
  if (sync.resend_from.has_value()) ports_.probe->CacheResyncAsked(worker);
  return sync;
}

CacheSync RouterCore::OnCacheSnapshot(const WorkerKey& worker,
                                      const CacheSnapshot& snapshot) {
  return workers_.ApplySnapshot(worker, snapshot);
}

void RouterCore::OnWorkerLost(const WorkerKey& worker,
                              const absl::Status& why) {
  workers_.Lose(worker, MakeError(ErrorReason::kWorkerLost,
                                  absl::StrCat("worker ", worker.name,
                                               " was lost: ", why.message())));
}

std::vector<RequestId> RouterCore::RequestsInOrder() const {
  std::vector<RequestId> ids;
  ids.reserve(requests_.size());
  for (const auto& [id, request] : requests_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void RouterCore::HandleLost(const WorkerKey& worker, const absl::Status& why) {
  ports_.probe->WorkerLost(worker, why);
  guard_.Remove(worker);
  FollowGuard();
  RaiseHope();
  for (RequestId id : RequestsInOrder()) {
    for (LegKind kind : {LegKind::kDecode, LegKind::kPrefill}) {
      auto it = requests_.find(id);
      if (it == requests_.end()) break;
      Request& r = *it->second;
      if (!r.attempt.has_value()) break;
      const Attempt::Leg* leg = kind == LegKind::kDecode ? &r.attempt->decode()
                                : r.attempt->prefill().has_value()
                                    ? &*r.attempt->prefill()
                                    : nullptr;
      if (leg == nullptr || leg->worker != worker || !leg->open()) continue;
      if (r.attempt->TakeCancel(kind)) ports_.legs->Cancel(leg->id);
      Execute(r, r.attempt->OnWorkerLost(kind, why));
    }
  }
  Pump();
}

// --- process ----------------------------------------------------------------

bool RouterCore::CanServe() const {
  const auto& workers = workers_.view().workers;
  return std::any_of(workers.begin(), workers.end(), [](const auto& named) {
    const WorkerView& worker = named.second;
    return worker.info.roles.decode && worker.ready();
  });
}

void RouterCore::Drain(std::function<void()> when_idle) {
  draining_ = true;
  when_idle_ = std::move(when_idle);
  CheckDrained();
}

void RouterCore::CheckDrained() {
  if (!draining_ || !idle() || !when_idle_) return;
  std::exchange(when_idle_, nullptr)();
}

void RouterCore::ReportInFlight() {
  ports_.probe->InFlight(running_, queued());
}

absl::Status RouterCore::CheckAccounting() const {
  int running = 0, retrying = 0, waiting = 0, loads = 0;
  // In any order: they are counted.
  for (const auto& [id, request] : requests_) {
    running += request->attempts > 0;
    retrying += request->retrying;
    waiting += request->queued.has_value() || request->waits;
    if (!request->attempt.has_value()) continue;
    loads += request->attempt->held_loads();
    for (LegId leg : request->attempt->unfinished()) {
      if (!legs_.contains(leg)) {
        return absl::InternalError(absl::StrCat("open leg ", leg,
                                                " of request ", id.value(),
                                                " is not accounted for"));
      }
    }
  }
  auto differ = [](absl::string_view what, int counted, int kept) {
    if (counted == kept) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(what, ": counted ", counted, ", kept ", kept));
  };
  RETURN_IF_ERROR(differ("running requests", running, running_));
  RETURN_IF_ERROR(differ("retried requests", retrying, retrying_));
  RETURN_IF_ERROR(differ("waiting requests", waiting,
                         static_cast<int>(waiting_.size() + again_.size())));
  RETURN_IF_ERROR(differ("requests that wait for their turn", admission_.size(),
                         static_cast<int>(waiting_.size())));
  RETURN_IF_ERROR(admission_.Check());
  RETURN_IF_ERROR(differ("reserved loads", loads, workers_.reservations()));
  if (requests_.empty()) return workers_.CheckIdle();
  return absl::OkStatus();
}

}  // namespace penstock
