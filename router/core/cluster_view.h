#pragma once

#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix_index.h"

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

// The router's aged picture of worker load and prefix ownership, kept by the
// worker registry; policies only read it. Single-threaded.
struct ClusterView {
  std::vector<WorkerView> workers;        // in order of name
  const PrefixIndex* prefixes = nullptr;  // null: nothing is cached

  // Leading blocks of the chain that each worker holds; as many as workers.
  std::vector<int> CachedBlocks(absl::Span<const BlockHash> chain) const;
};

}  // namespace penstock
