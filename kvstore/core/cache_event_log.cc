#include "kvstore/core/cache_event_log.h"

#include <algorithm>
#include <utility>

namespace penstock {

void CacheEventLog::Append(CacheEvent event) {
  event.sequence = ++last_;
  events_.push_back(std::move(event));
  if (events_.size() > ring_) events_.pop_front();
}

void CacheEventLog::Stored(BlockHash parent, BlockHash hash) {
  Append({0, BlocksStored{parent, {hash}}});
  stored_[hash] = {parent, last_};
}

void CacheEventLog::Removed(BlockHash hash) {
  Append({0, BlocksRemoved{{hash}}});
  stored_.erase(hash);
}

void CacheEventLog::Cleared() {
  Append({0, CacheCleared{}});
  stored_.clear();
}

std::optional<std::vector<CacheEvent>> CacheEventLog::Since(
    uint64_t sequence) const {
  if (sequence >= last_) return std::vector<CacheEvent>();
  uint64_t first = last_ - events_.size() + 1;
  if (sequence + 1 < first) return std::nullopt;
  return std::vector<CacheEvent>(events_.begin() + (sequence + 1 - first),
                                 events_.end());
}

CacheSnapshot CacheEventLog::Snapshot() const {
  // A parent was stored before its children, so the order of sequences is an
  // order of parents first. A parent stored again after its child (evicted in
  // between) cannot happen: leaves are evicted first.
  std::vector<std::pair<uint64_t, BlockHash>> nodes;
  nodes.reserve(stored_.size());
  for (const auto& [hash, node] : stored_) {
    nodes.emplace_back(node.sequence, hash);
  }
  std::sort(nodes.begin(), nodes.end());
  CacheSnapshot out;
  out.sequence = last_;
  for (const auto& [sequence, hash] : nodes) {
    out.chains.push_back({stored_.find(hash)->second.parent, {hash}});
  }
  return out;
}

}  // namespace penstock
