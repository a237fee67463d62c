#include "kvstore/core/cache_event_log.h"

#include <algorithm>
#include <utility>

namespace penstock {

void CacheEventLog::Append(Record record) {
  ++last_;
  events_.push_back(record);
  if (events_.size() > ring_) events_.pop_front();
}

void CacheEventLog::Stored(BlockHash parent, BlockHash hash) {
  Append({Record::Kind::kStored, parent, hash});
  stored_[hash] = {parent, last_};
}

void CacheEventLog::Removed(BlockHash hash) {
  Append({Record::Kind::kRemoved, BlockHash(), hash});
  stored_.erase(hash);
}

void CacheEventLog::Cleared() {
  Append({Record::Kind::kCleared, BlockHash(), BlockHash()});
  stored_.clear();
}

std::optional<std::vector<CacheEvent>> CacheEventLog::Since(
    uint64_t sequence, uint64_t most) const {
  std::vector<CacheEvent> events;
  if (sequence >= last_) return events;
  const uint64_t first = last_ - events_.size() + 1;
  if (sequence + 1 < first) return std::nullopt;
  const uint64_t count = std::min(most, last_ - sequence);
  events.reserve(count);
  for (uint64_t at = sequence + 1; at <= sequence + count; ++at) {
    const Record& record = events_[at - first];
    CacheEvent& event = events.emplace_back();
    event.sequence = at;
    switch (record.kind) {
      case Record::Kind::kStored:
        event.change = BlocksStored{record.parent, {record.hash}};
        break;
      case Record::Kind::kRemoved:
        event.change = BlocksRemoved{{record.hash}};
        break;
      case Record::Kind::kCleared:
        event.change = CacheCleared{};
        break;
    }
  }
  return events;
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
