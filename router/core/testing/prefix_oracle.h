#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix/prefix_match.h"

namespace penstock {

// What a prefix index has to answer, as plainly and slowly as can be: a set of
// hashes for each worker. It knows the same errors, bounds on predictions, and
// nothing of memory.
class PrefixOracle {
 public:
  // How long predictions count: at least so long, at most twice that.
  explicit PrefixOracle(absl::Duration lifetime) : lifetime_(lifetime) {}

  void AddWorker(WorkerSlot slot, size_t max_blocks);
  void RemoveWorker(WorkerSlot slot) { workers_.erase(slot); }
  absl::StatusCode Apply(WorkerSlot slot, const CacheEvent& event);
  absl::StatusCode Replace(WorkerSlot slot, const CacheSnapshot& snapshot);
  void Predict(WorkerSlot slot, std::vector<BlockHash> chain, Instant now);
  void Withdraw(WorkerSlot slot, absl::Span<const BlockHash> chain);

  // Leading blocks that the worker holds: by what it said, and the least and
  // the most that a match may say.
  struct Depth {
    int said = 0, least = 0, most = 0;
  };
  Depth DepthOf(WorkerSlot slot, absl::Span<const BlockHash> chain,
                Instant now) const;

  const std::set<BlockHash>& BlocksOf(WorkerSlot slot) const {
    return workers_.at(slot).blocks;
  }
  uint64_t ExpectedSequence(WorkerSlot slot) const {
    return workers_.at(slot).sequence + 1;
  }
  std::vector<WorkerSlot> Workers() const;
  size_t memberships() const;

 private:
  struct Worker {
    size_t max_blocks = 0;
    uint64_t sequence = 0;
    std::set<BlockHash> blocks;
    std::vector<std::pair<Instant, std::set<BlockHash>>> predicted;
  };

  absl::Duration lifetime_;
  std::map<WorkerSlot, Worker> workers_;
};

}  // namespace penstock
