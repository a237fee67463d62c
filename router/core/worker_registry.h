#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/worker_report.h"
#include "router/core/cluster_view.h"
#include "router/core/prefix_index.h"

namespace penstock {

class WorkerRegistry;

// Load that a leg holds on its worker from the moment it is placed. Move-only;
// gives the load back once, when released or destroyed. Must not outlive the
// registry.
class LoadReservation {
 public:
  LoadReservation() = default;
  LoadReservation(LoadReservation&& other) noexcept;
  LoadReservation& operator=(LoadReservation&& other) noexcept;
  ~LoadReservation() { Release(); }

  void Release();
  bool held() const { return registry_ != nullptr; }

 private:
  friend class WorkerRegistry;
  LoadReservation(WorkerRegistry* registry, WorkerSlot slot,
                  uint64_t registration, LoadShare share)
      : registry_(registry),
        slot_(slot),
        registration_(registration),
        share_(share) {}

  WorkerRegistry* registry_ = nullptr;
  WorkerSlot slot_ = 0;
  uint64_t registration_ = 0;
  LoadShare share_;
};

// What a worker has to send again, if anything.
struct CacheSync {
  // 0: a snapshot. A number: events from this sequence on.
  std::optional<uint64_t> resend_from;
};

// Every worker the router knows, with health, load and cached blocks.
// Single-threaded; owned by the router core.
class WorkerRegistry {
 public:
  struct Options {
    ContentId content;  // of the router's model; others are refused
    absl::Duration heartbeat_interval = absl::Milliseconds(500);
    int suspect_after = 3;  // intervals without a load report
    int lost_after = 20;    // intervals without any sign of life
    // Without a load report while others report: it hangs, although its stream
    // lives. When nobody reports, it is the telemetry that fails.
    absl::Duration stalled_after = absl::Seconds(60);
    int max_workers = 4096;
    // A worker with this many requests for each sequence that it can run is
    // full; more wait in the router, where the order can still change.
    int requests_per_sequence = 2;
    WorkEstimate work = {};  // as the policy predicts it
    PrefixIndex::Options prefixes = {};
  };
  // Runs for each worker that is lost, whatever the cause, after the registry
  // has forgotten it.
  using LostCallback =
      std::function<void(const WorkerKey& worker, const absl::Status& why)>;
  // Runs for each worker that becomes suspect.
  using SuspectCallback = std::function<void(const WorkerKey& worker)>;

  WorkerRegistry(const Options& options, const Clock& clock, Timers& timers,
                 LostCallback on_lost, SuspectCallback on_suspect = nullptr);
  ~WorkerRegistry();
  WorkerRegistry(const WorkerRegistry&) = delete;
  WorkerRegistry& operator=(const WorkerRegistry&) = delete;

  // Adds a worker, not ready before its first heartbeat says so. A worker of
  // the same name is lost first, unless it is the same incarnation saying the
  // same again: then only what it was asked to send is forgotten.
  // kIncompatibleWorker: other content than the router's; kInvalidField: no
  // name, role, address or transport, sizes below zero; kQueueFull: max_workers
  // reached. Layouts may differ between workers: policies pair equal ones only.
  absl::Status Register(const WorkerInfo& info);

  // kWorkerLost when the worker is unknown: it has to register again. A worker
  // that drains does so until its end, whatever a report that was under way
  // says.
  absl::Status Report(const WorkerKey& worker, const WorkerLoad& load);

  // It refuses work, as its next report will say. False: that was known, or the
  // worker is unknown.
  bool NoteDraining(const WorkerKey& worker);

  // Its stream lives, whether or not it reports its load: telemetry may fail
  // without the worker. Unknown workers: no-op.
  void Alive(const WorkerKey& worker);

  // Applies events up to the first that does not fit. After an answer with
  // `resend_from`, events are ignored until what was asked for arrives; it is
  // not asked for twice. Events of unknown workers are ignored.
  CacheSync ApplyEvents(const WorkerKey& worker,
                        absl::Span<const CacheEvent> events);
  CacheSync ApplySnapshot(const WorkerKey& worker,
                          const CacheSnapshot& snapshot);

  // Unknown workers, and another incarnation of a known one: no-op.
  void Lose(const WorkerKey& worker, const absl::Status& why);

  // Precondition: the worker is known.
  LoadReservation Reserve(const WorkerKey& worker, const LoadShare& share);

  // The legs of a request of `session` (0: of none) are placed there from now
  // on. Precondition: as Reserve.
  void NotePlaced(LegKind leg, uint64_t session, const WorkerKey& worker);

  // The worker computes the chain or has been handed it, and will hold it: the
  // view says so until the worker does, at most for a few seconds. Withdraw: it
  // will not, after all. Unknown workers: no-op.
  void Predict(const WorkerKey& worker, absl::Span<const BlockHash> chain);
  void Withdraw(const WorkerKey& worker, absl::Span<const BlockHash> chain);
  // Takes predictions that are past their time out of the view.
  void ExpirePredictions() { prefixes_.ExpirePredictions(clock_.Now()); }

  // From now on no leg of the kind goes to the worker, or may again. Unknown
  // workers: no-op.
  void Veto(LegKind leg, const WorkerKey& worker, bool vetoed);

  const WorkerView* Find(const WorkerKey& worker) const {
    return view_.Find(worker);
  }
  const ClusterView& view() const { return view_; }
  const PrefixIndex& prefixes() const { return prefixes_; }

  // Its reports come as they should: one has come since a worker that is
  // suspect only now fell silent, so that not everybody is. False: unknown.
  bool ReportsOnTime(const WorkerKey& worker) const;

  // Held reservations, those on lost workers included.
  int reservations() const { return reservations_; }
  // INTERNAL names a worker whose reserved load is not zero although nothing
  // is reserved.
  absl::Status CheckIdle() const;

 private:
  friend class LoadReservation;
  struct Record {
    WorkerKey key;
    uint64_t registration = 0;  // never used twice, as slots are
    Instant last_report, last_heard;
    bool reported = false;  // at all
    TimerId silence = 0;
    // Cache events are ignored until what was asked for arrives.
    bool awaiting_snapshot = false;
    bool awaiting_replay = false;
  };

  absl::Status Validate(const WorkerInfo& info) const;
  WorkerView* FindView(const WorkerKey& worker);
  // Somebody's reports are fresh.
  bool TelemetryWorks() const;
  // When the worker counts as stalled if it does not report.
  Instant StalledAt(const Record& record) const;
  void Refresh(const WorkerView& worker) {
    view_.Refresh(worker, options_.work, options_.requests_per_sequence);
  }
  // Calls OnSilence when the worker may have become suspect, or lost.
  void WatchSilence(WorkerSlot slot);
  void OnSilence(WorkerSlot slot);
  void Release(WorkerSlot slot, uint64_t registration, const LoadShare& share);

  Options options_;
  const Clock& clock_;
  Timers& timers_;
  LostCallback on_lost_;
  SuspectCallback on_suspect_;
  PrefixIndex prefixes_;
  ClusterView view_;
  std::map<WorkerSlot, Record> records_;
  uint64_t registrations_ = 0;
  int reservations_ = 0;
  Instant telemetry_since_;  // somebody's reports have been fresh since then
};

}  // namespace penstock
