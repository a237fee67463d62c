#include "router/core/worker_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// Counts in reports beyond this are nonsense, and sums of a few stay an int.
constexpr int kMaxCount = 1 << 28;

bool InRange(std::initializer_list<int> counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [](int n) { return n >= 0 && n <= kMaxCount; });
}

// The router computes with them.
bool Sane(const StepCosts& costs) {
  for (double seconds : {costs.step, costs.row, costs.pair, costs.sample}) {
    if (!(seconds >= 0 && seconds <= 3600)) return false;
  }
  return true;
}

absl::Status Invalid(absl::string_view field, absl::string_view why) {
  return MakeError(ErrorReason::kInvalidField,
                   absl::StrCat("worker ", field, " ", why), field);
}

absl::Status UnknownWorker(const WorkerKey& worker) {
  return MakeError(
      ErrorReason::kWorkerLost,
      absl::StrCat("worker ", worker.name,
                   " is not registered (any more): register again"));
}

}  // namespace

LoadReservation::LoadReservation(LoadReservation&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)),
      slot_(other.slot_),
      registration_(other.registration_),
      share_(other.share_) {}

LoadReservation& LoadReservation::operator=(LoadReservation&& other) noexcept {
  if (this == &other) return *this;
  Release();
  registry_ = std::exchange(other.registry_, nullptr);
  slot_ = other.slot_;
  registration_ = other.registration_;
  share_ = other.share_;
  return *this;
}

void LoadReservation::Release() {
  if (WorkerRegistry* registry = std::exchange(registry_, nullptr)) {
    registry->Release(slot_, registration_, share_);
  }
}

WorkerRegistry::WorkerRegistry(const Options& options, const Clock& clock,
                               Timers& timers, LostCallback on_lost,
                               SuspectCallback on_suspect)
    : options_(options),
      clock_(clock),
      timers_(timers),
      on_lost_(std::move(on_lost)),
      on_suspect_(std::move(on_suspect)),
      prefixes_(options.prefixes) {
  view_.prefixes = &prefixes_;
}

WorkerRegistry::~WorkerRegistry() {
  for (auto& [slot, record] : records_) timers_.Cancel(record.silence);
}

absl::Status WorkerRegistry::Validate(const WorkerInfo& info) const {
  if (info.key.name.empty()) return Invalid("name", "is empty");
  if (!info.key.incarnation) return Invalid("incarnation", "is 0");
  if (!info.roles.prefill && !info.roles.decode) {
    return Invalid("roles", "name neither prefill nor decode");
  }
  if (info.control_address.empty())
    return Invalid("control_address", "is empty");
  if (info.transports.empty()) return Invalid("transports", "are empty");
  if (!InRange({info.context_length, info.total_blocks, info.max_sequences})) {
    return Invalid("sizes", "are out of range");
  }
  if (info.content != options_.content) {
    return MakeError(
        ErrorReason::kIncompatibleWorker,
        absl::StrCat("worker ", info.key.name, " serves model content ",
                     absl::Hex(info.content.value(), absl::kZeroPad16),
                     ", this router ",
                     absl::Hex(options_.content.value(), absl::kZeroPad16),
                     ": start both with the same model file"),
        "content");
  }
  return absl::OkStatus();
}

absl::Status WorkerRegistry::Register(const WorkerInfo& info) {
  RETURN_IF_ERROR(Validate(info));
  if (const WorkerView* known = view_.FindName(info.key.name)) {
    const WorkerKey old = known->info.key;
    if (old == info.key) {
      // On a new stream; what was asked for on the old one may never come.
      Record& record = records_.at(known->slot);
      record.awaiting_snapshot = record.awaiting_replay = false;
      return absl::OkStatus();
    }
    Lose(old, MakeError(ErrorReason::kWorkerLost,
                        absl::StrCat("worker ", old.name, " restarted")));
    return Register(info);
  }
  if (records_.size() >= static_cast<size_t>(options_.max_workers)) {
    return MakeError(ErrorReason::kQueueFull,
                     absl::StrCat("the router knows ", options_.max_workers,
                                  " workers already"));
  }
  // Twice what fits, for blocks that a worker keeps below its arena.
  const WorkerSlot slot =
      prefixes_.AddWorker(2 * static_cast<size_t>(info.total_blocks));
  WorkerView worker;
  worker.info = info;
  worker.slot = slot;
  worker.reported.health = WorkerHealth::kLoading;
  view_.Add(std::move(worker));
  Refresh(view_.At(slot));
  Record& record = records_[slot];
  record.key = info.key;
  record.registration = ++registrations_;
  record.last_report = record.last_heard = clock_.Now();
  WatchSilence(slot);
  return absl::OkStatus();
}

absl::Status WorkerRegistry::Report(const WorkerKey& worker,
                                    const WorkerLoad& load) {
  WorkerView* view = FindView(worker);
  if (view == nullptr) return UnknownWorker(worker);
  if (!InRange({load.queued_requests, load.active_requests, load.queued_tokens,
                load.free_blocks, load.total_blocks}) ||
      load.free_blocks > load.total_blocks || !Sane(load.costs)) {
    return Invalid("load", "is out of range");
  }
  if (!TelemetryWorks()) telemetry_since_ = clock_.Now();
  const bool drains = view->drains();
  view->reported = load;
  if (drains) view->reported.health = WorkerHealth::kDraining;
  view->reserved_at_report = view->reserved;
  view->suspect = false;
  view->pace = options_.work.PaceOf(load.costs, view->pace);
  Refresh(*view);
  Record& record = records_.at(view->slot);
  record.reported = true;
  record.last_report = record.last_heard = clock_.Now();
  WatchSilence(view->slot);
  return absl::OkStatus();
}

bool WorkerRegistry::NoteDraining(const WorkerKey& worker) {
  WorkerView* view = FindView(worker);
  if (view == nullptr || view->drains()) return false;
  view->reported.health = WorkerHealth::kDraining;
  Refresh(*view);
  return true;
}

void WorkerRegistry::Alive(const WorkerKey& worker) {
  const WorkerView* view = Find(worker);
  if (view != nullptr) records_.at(view->slot).last_heard = clock_.Now();
}

CacheSync WorkerRegistry::ApplyEvents(const WorkerKey& worker,
                                      absl::Span<const CacheEvent> events) {
  WorkerView* view = FindView(worker);
  if (view == nullptr) return {};
  Record& record = records_.at(view->slot);
  record.last_heard = clock_.Now();
  if (record.awaiting_snapshot) return {};
  for (const CacheEvent& event : events) {
    absl::Status status = prefixes_.Apply(view->slot, event);
    if (status.ok()) {
      if (event.sequence + 1 == prefixes_.ExpectedSequence(view->slot)) {
        record.awaiting_replay = false;
      }
      continue;
    }
    if (!absl::IsOutOfRange(status)) {
      record.awaiting_snapshot = true;
      record.awaiting_replay = false;
      return {.resend_from = 0};
    }
    if (record.awaiting_replay) continue;
    record.awaiting_replay = true;
    return {.resend_from = prefixes_.ExpectedSequence(view->slot)};
  }
  return {};
}

CacheSync WorkerRegistry::ApplySnapshot(const WorkerKey& worker,
                                        const CacheSnapshot& snapshot) {
  WorkerView* view = FindView(worker);
  if (view == nullptr) return {};
  Record& record = records_.at(view->slot);
  record.awaiting_snapshot = false;
  record.awaiting_replay = false;
  // A snapshot that makes no sense would not make more the second time: go on
  // without knowing what the worker has cached.
  if (!prefixes_.Replace(view->slot, snapshot).ok()) {
    prefixes_.ClearWorker(view->slot);
    record.awaiting_snapshot = true;
  }
  return {};
}

void WorkerRegistry::Lose(const WorkerKey& worker, const absl::Status& why) {
  WorkerView* view = FindView(worker);
  if (view == nullptr) return;
  auto record = records_.find(view->slot);
  // The argument may live in what is erased.
  const WorkerKey key = std::move(record->second.key);
  timers_.Cancel(record->second.silence);
  prefixes_.RemoveWorker(view->slot);
  records_.erase(record);
  view_.Remove(*view);
  on_lost_(key, why);
}

LoadReservation WorkerRegistry::Reserve(const WorkerKey& worker,
                                        const LoadShare& share) {
  WorkerView* view = FindView(worker);
  CHECK(view != nullptr) << "no worker " << worker.name;
  view->reserved += share;
  Refresh(*view);
  ++reservations_;
  return LoadReservation(this, view->slot, records_.at(view->slot).registration,
                         share);
}

void WorkerRegistry::Release(WorkerSlot slot, uint64_t registration,
                             const LoadShare& share) {
  CHECK(reservations_ > 0);
  --reservations_;
  auto it = records_.find(slot);
  // Lost meanwhile, and its load with it.
  if (it == records_.end() || it->second.registration != registration) return;
  WorkerView* view = FindView(it->second.key);
  view->reserved -= share;
  Refresh(*view);
}

void WorkerRegistry::NotePlaced(LegKind leg, uint64_t session,
                                const WorkerKey& worker) {
  const WorkerView* view = Find(worker);
  CHECK(view != nullptr) << "no worker " << worker.name;
  view_.memory.Note(leg, session, {view->slot, worker.incarnation});
}

void WorkerRegistry::Predict(const WorkerKey& worker,
                             absl::Span<const BlockHash> chain) {
  const WorkerView* view = Find(worker);
  if (view != nullptr) prefixes_.Predict(view->slot, chain, clock_.Now());
}

void WorkerRegistry::Withdraw(const WorkerKey& worker,
                              absl::Span<const BlockHash> chain) {
  const WorkerView* view = Find(worker);
  if (view != nullptr) prefixes_.Withdraw(view->slot, chain);
}

void WorkerRegistry::Veto(LegKind leg, const WorkerKey& worker, bool vetoed) {
  WorkerView* view = FindView(worker);
  if (view == nullptr) return;
  (leg == LegKind::kDecode ? view->vetoed.decode : view->vetoed.prefill) =
      vetoed;
  Refresh(*view);
}

WorkerView* WorkerRegistry::FindView(const WorkerKey& worker) {
  return const_cast<WorkerView*>(std::as_const(*this).Find(worker));
}

// When all fall silent together, their last reports are at most an interval
// apart.
bool WorkerRegistry::ReportsOnTime(const WorkerKey& worker) const {
  const WorkerView* view = Find(worker);
  if (view == nullptr) return false;
  const absl::Duration silent =
      clock_.Now() - records_.at(view->slot).last_report;
  return silent <
         std::max(1, options_.suspect_after - 1) * options_.heartbeat_interval;
}

bool WorkerRegistry::TelemetryWorks() const {
  return std::any_of(
      view_.workers.begin(), view_.workers.end(), [&](const auto& named) {
        return !named.second.suspect && records_.at(named.second.slot).reported;
      });
}

Instant WorkerRegistry::StalledAt(const Record& record) const {
  return std::max(record.last_report, telemetry_since_) +
         options_.stalled_after;
}

void WorkerRegistry::WatchSilence(WorkerSlot slot) {
  Record& record = records_.at(slot);
  const absl::Duration interval = options_.heartbeat_interval;
  const absl::Duration patience = options_.suspect_after * interval;
  Instant next = record.last_heard + options_.lost_after * interval;
  if (!FindView(record.key)->suspect) {
    next = std::min(next, record.last_report + patience);
  } else if (StalledAt(record) > clock_.Now()) {
    next = std::min(next, StalledAt(record));
  } else {  // as is everybody else: look again
    next = std::min(next, clock_.Now() + patience);
  }
  timers_.Cancel(record.silence);
  record.silence = timers_.Schedule(next, [this, slot] { OnSilence(slot); });
}

void WorkerRegistry::OnSilence(WorkerSlot slot) {
  const Record& record = records_.at(slot);
  const WorkerKey key = record.key;
  const absl::Duration interval = options_.heartbeat_interval;
  const absl::Duration silent = clock_.Now() - record.last_heard;
  if (silent >= options_.lost_after * interval) {
    Lose(key, MakeError(ErrorReason::kWorkerLost,
                        absl::StrCat("worker ", key.name, " was silent for ",
                                     absl::FormatDuration(silent))));
    return;
  }
  WorkerView* view = FindView(key);
  if (view->suspect && clock_.Now() >= StalledAt(record) && TelemetryWorks()) {
    Lose(key, MakeError(ErrorReason::kWorkerLost,
                        absl::StrCat("worker ", key.name, " has not reported ",
                                     "its load for ",
                                     absl::FormatDuration(clock_.Now() -
                                                          record.last_report),
                                     " while others have")));
    return;
  }
  const bool overdue =
      clock_.Now() - record.last_report >= options_.suspect_after * interval;
  const bool was_suspect = std::exchange(view->suspect, overdue);
  Refresh(*view);
  WatchSilence(slot);
  if (overdue && !was_suspect && on_suspect_) on_suspect_(key);
}

absl::Status WorkerRegistry::CheckIdle() const {
  if (reservations_ != 0) {
    return absl::InternalError(
        absl::StrCat(reservations_, " load reservations are still held"));
  }
  for (const auto& [name, worker] : view_.workers) {
    if (worker.reserved != LoadShare()) {
      return absl::InternalError(
          absl::StrCat("worker ", name, " has ", worker.reserved.requests,
                       " requests, ", worker.reserved.blocks, " blocks and ",
                       absl::FormatDuration(worker.reserved.time),
                       " reserved although nothing is"));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
