#pragma once

#include <string>
#include <utility>

#include "tools/simulator/sim_cluster.h"

namespace penstock {

// Faults for a simulated cluster, and what its router sees of its workers.

constexpr absl::Duration kOnce = absl::ZeroDuration();

inline SimClusterOptions Options() {
  SimClusterOptions options;
  return options;
}

inline bool Wait(SimCluster& cluster, absl::Duration time) {
  return cluster.RunUntil([] { return false; }, time);
}

inline Fault At(absl::Duration at, FaultKind kind, std::string host,
                absl::Duration lasts = kOnce, double amount = 1,
                std::string peer = "") {
  return {kind, at, lasts, std::move(host), std::move(peer), amount};
}

inline const WorkerView* ViewOf(SimCluster& cluster, const std::string& name) {
  return cluster.router().workers().view().FindName(name);
}

inline bool Suspects(SimCluster& cluster, const std::string& name) {
  const WorkerView* worker = ViewOf(cluster, name);
  return worker == nullptr || worker->suspect;
}

inline bool Knows(SimCluster& cluster, const std::string& name) {
  return ViewOf(cluster, name) != nullptr;
}

}  // namespace penstock
