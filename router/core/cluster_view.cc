#include "router/core/cluster_view.h"

#include <algorithm>

namespace penstock {
namespace {

// A number of the last report, moved by what this router reserved and released
// since. Legs still on their way to the worker are missing in the report but
// not in `reserved`, which therefore is the floor.
template <typename T>
T Predict(bool fresh, T reported, T reserved, T reserved_at_report) {
  if (!fresh) return reserved;
  return std::max(reserved, reported + (reserved - reserved_at_report));
}

}  // namespace

LoadShare& LoadShare::operator+=(const LoadShare& other) {
  time += other.time;
  requests += other.requests;
  blocks += other.blocks;
  return *this;
}

LoadShare& LoadShare::operator-=(const LoadShare& other) {
  time -= other.time;
  requests -= other.requests;
  blocks -= other.blocks;
  return *this;
}

int WorkerView::PredictedRequests() const {
  return Predict(!suspect, reported.queued_requests + reported.active_requests,
                 reserved.requests, reserved_at_report.requests);
}

int WorkerView::PredictedBlocks() const {
  return Predict(!suspect, reported.total_blocks - reported.free_blocks,
                 reserved.blocks, reserved_at_report.blocks);
}

absl::Duration WorkerView::PredictedTime(absl::Duration reported_time) const {
  return Predict(!suspect, reported_time, reserved.time,
                 reserved_at_report.time);
}

std::vector<int> ClusterView::CachedBlocks(
    absl::Span<const BlockHash> chain) const {
  std::vector<int> cached(workers.size());
  if (prefixes == nullptr) return cached;
  const PrefixMatch match = prefixes->Match(chain);
  if (match.empty()) return cached;
  for (size_t i = 0; i < workers.size(); ++i) {
    cached[i] = match.BlocksOf(workers[i].slot);
  }
  return cached;
}

}  // namespace penstock
