#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/peer/leg.h"
#include "common/peer/worker_report.h"
#include "router/core/placement_memory.h"
#include "router/core/prefix_index.h"
#include "router/core/work_estimate.h"
#include "router/core/worker_columns.h"

namespace penstock {

// Load that one leg puts on its worker, as predicted when it was placed.
// Durations are integers, so that what is added and taken away cancels out.
struct LoadShare {
  absl::Duration time;
  int requests = 0;
  int blocks = 0;

  LoadShare& operator+=(const LoadShare& other);
  LoadShare& operator-=(const LoadShare& other);
  friend bool operator==(const LoadShare&, const LoadShare&) = default;
};

// What a policy may know about one worker. A plain value.
struct WorkerView {
  WorkerInfo info;
  WorkerSlot slot = 0;  // in the prefix index
  // Heartbeats are missing: chosen only when every candidate is suspect, and
  // then by this router's own counts.
  bool suspect = false;
  // The last heartbeat, and what this router had reserved when it came.
  WorkerLoad reported;
  LoadShare reserved_at_report;
  LoadShare reserved;
  WorkerPace pace = {};  // by what it measured
  // Legs that the router would not send there, whatever is reported: a breaker
  // is open.
  WorkerRoles vetoed;

  bool ready() const { return reported.health == WorkerHealth::kReady; }
  bool drains() const { return reported.health == WorkerHealth::kDraining; }

  // Requests on the worker now: the last report corrected by what was reserved
  // and released since, never under this router's own; without fresh reports
  // this router's own alone.
  int PredictedRequests() const;
  // Blocks in use that cannot be evicted, in the same way.
  int PredictedBlocks() const;
  // Work ahead. `reported_time`: what the report's counts mean in time.
  absl::Duration PredictedTime(absl::Duration reported_time) const;
};

// How much memory in use stretches work: 0 when empty, without bound near full.
double MemoryPressure(int blocks, int total_blocks);

// The router's aged picture of worker load and prefix ownership, kept by the
// worker registry; policies only read it. Single-threaded.
struct ClusterView {
  std::map<std::string, WorkerView> workers;  // by name
  const PrefixIndex* prefixes = nullptr;      // null: nothing is cached
  PlacementMemory memory;

  // The same workers by slot, as decisions read them.
  WorkerColumns columns;

  // Null when there is none.
  const WorkerView* FindName(const std::string& name) const;
  const WorkerView* Find(const WorkerKey& worker) const;
  // The worker of a slot that is in one of the columns' sets.
  const WorkerView& At(WorkerSlot slot) const { return *by_slot_[slot]; }
  // May KV pages go from a worker of one pairing to one of another?
  bool CanHandOff(int prefill_pairing, int decode_pairing) const;
  // Pairings are below this; those that no worker has any more among them.
  int pairings() const { return static_cast<int>(pairings_.size()); }
  // That of every worker, if there is but one.
  std::optional<int> OnlyPairing() const;

  // Leading blocks of the chain that each worker holds, in order of name.
  std::vector<int> CachedBlocks(absl::Span<const BlockHash> chain) const;

  // For the worker registry, which alone changes workers. Preconditions: no
  // worker has this name or slot; this one is there. O(log workers).
  void Add(WorkerView worker);
  void Remove(const WorkerView& worker);
  // Brings the columns in line with what has changed of a worker, or is new.
  // One with `requests_per_sequence` requests for each sequence that it can run
  // is full. O(1).
  void Refresh(const WorkerView& worker, const WorkEstimate& work,
               int requests_per_sequence);

 private:
  struct Pairing {
    LayoutId layout;
    ContentId content;
    NumericsId numerics;
    uint32_t transports = 0;  // a bit for each
    friend auto operator<=>(const Pairing&, const Pairing&) = default;
  };
  static Pairing PairingOf(const WorkerInfo& info);
  int NumberOf(const Pairing& pairing);
  void FitColumns(WorkerSlot slot);
  void NoteLeast();

  struct PairingUse {
    int number = 0;
    int workers = 0;
  };
  std::vector<Pairing> pairings_;
  std::map<Pairing, PairingUse> pairing_uses_;
  std::vector<int> free_pairings_;  // numbers that no worker has
  std::multiset<int64_t> capacities_;
  std::multiset<int> contexts_;
  std::vector<const WorkerView*> by_slot_;
};

}  // namespace penstock
