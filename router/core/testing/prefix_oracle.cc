#include "router/core/testing/prefix_oracle.h"

#include <algorithm>
#include <variant>

namespace penstock {
namespace {

int Walk(absl::Span<const BlockHash> chain, const std::set<BlockHash>& held) {
  int depth = 0;
  for (BlockHash hash : chain) {
    if (!held.contains(hash)) break;
    ++depth;
  }
  return depth;
}

}  // namespace

void PrefixOracle::AddWorker(WorkerSlot slot, size_t max_blocks) {
  workers_[slot].max_blocks = max_blocks;
}

absl::StatusCode PrefixOracle::Apply(WorkerSlot slot, const CacheEvent& event) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return absl::StatusCode::kNotFound;
  Worker& worker = it->second;
  if (event.sequence <= worker.sequence) return absl::StatusCode::kOk;
  if (event.sequence != worker.sequence + 1) {
    return absl::StatusCode::kOutOfRange;
  }
  if (const auto* stored = std::get_if<BlocksStored>(&event.change)) {
    std::set<BlockHash> fresh;
    for (BlockHash hash : stored->hashes) {
      if (!worker.blocks.contains(hash)) fresh.insert(hash);
    }
    if ((stored->parent && !worker.blocks.contains(stored->parent)) ||
        fresh.contains(BlockHash()) ||
        worker.blocks.size() + fresh.size() > worker.max_blocks) {
      return absl::StatusCode::kFailedPrecondition;
    }
    worker.blocks.insert(fresh.begin(), fresh.end());
  } else if (const auto* removed = std::get_if<BlocksRemoved>(&event.change)) {
    for (BlockHash hash : removed->hashes) {
      worker.blocks.erase(hash);
      for (auto& [time, chain] : worker.predicted) chain.erase(hash);
    }
  } else {
    worker.blocks.clear();
    worker.predicted.clear();
  }
  worker.sequence = event.sequence;
  return absl::StatusCode::kOk;
}

absl::StatusCode PrefixOracle::Replace(WorkerSlot slot,
                                       const CacheSnapshot& snapshot) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return absl::StatusCode::kNotFound;
  std::set<BlockHash> blocks;
  size_t count = 0;
  for (const BlocksStored& chain : snapshot.chains) {
    count += chain.hashes.size();
    blocks.insert(chain.hashes.begin(), chain.hashes.end());
  }
  if (blocks.contains(BlockHash()) || count > it->second.max_blocks) {
    return absl::StatusCode::kInvalidArgument;
  }
  it->second.blocks = std::move(blocks);
  it->second.predicted.clear();
  it->second.sequence = snapshot.sequence;
  return absl::StatusCode::kOk;
}

void PrefixOracle::Predict(WorkerSlot slot, std::vector<BlockHash> chain,
                           Instant now) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return;
  const int said = Walk(chain, it->second.blocks);
  if (said == static_cast<int>(chain.size())) return;
  auto& predicted = it->second.predicted;
  std::erase_if(predicted, [&](const auto& entry) {
    return now >= entry.first + 2 * lifetime_;
  });
  predicted.push_back({now, {chain.begin(), chain.end()}});
}

void PrefixOracle::Withdraw(WorkerSlot slot,
                            absl::Span<const BlockHash> chain) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return;
  for (BlockHash hash : chain) {
    for (auto& [time, predicted] : it->second.predicted) predicted.erase(hash);
  }
}

PrefixOracle::Depth PrefixOracle::DepthOf(WorkerSlot slot,
                                          absl::Span<const BlockHash> chain,
                                          Instant now) const {
  Depth depth;
  auto it = workers_.find(slot);
  if (it == workers_.end()) return depth;
  const Worker& worker = it->second;
  depth.said = depth.least = depth.most = Walk(chain, worker.blocks);
  for (const auto& [time, held] : worker.predicted) {
    if (now < time + lifetime_) {
      depth.least = std::max(depth.least, Walk(chain, held));
    }
  }
  // Predictions of one worker may complete each other, but need not.
  auto predicted = [&](BlockHash hash) {
    return std::any_of(worker.predicted.begin(), worker.predicted.end(),
                       [&](const auto& entry) {
                         return now < entry.first + 2 * lifetime_ &&
                                entry.second.contains(hash);
                       });
  };
  int together = 0;
  for (BlockHash hash : chain) {
    if (!predicted(hash)) break;
    ++together;
  }
  depth.most = std::max(depth.most, together);
  return depth;
}

std::vector<WorkerSlot> PrefixOracle::Workers() const {
  std::vector<WorkerSlot> slots;
  for (const auto& [slot, worker] : workers_) slots.push_back(slot);
  return slots;
}

size_t PrefixOracle::memberships() const {
  size_t memberships = 0;
  for (const auto& [slot, worker] : workers_) {
    memberships += worker.blocks.size();
  }
  return memberships;
}

}  // namespace penstock
