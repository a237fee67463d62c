#include "kvstore/core/cache_event_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock {
namespace {

// Of one event: what bounds a message counts events.
constexpr size_t kMaxBlocks = 256;

}  // namespace

// Whether the next change belongs to the last event.
bool CacheEventLog::Continues(Kind kind, BlockHash parent) const {
  if (last_ == read_ || events_.empty()) return false;
  const Record& last = events_.back();
  if (last.kind != kind || last.blocks >= std::min(kMaxBlocks, ring_)) {
    return false;
  }
  return kind == Kind::kRemoved ||
         (kind == Kind::kStored && parent && hashes_.back() == parent);
}

void CacheEventLog::Append(Kind kind, BlockHash parent, BlockHash hash) {
  if (!Continues(kind, parent)) {
    ++last_;
    events_.push_back({kind, parent});
  }
  if (hash) {
    ++events_.back().blocks;
    hashes_.push_back(hash);
  }
  while (hashes_.size() > ring_ || events_.size() > ring_) DropOldest();
}

void CacheEventLog::DropOldest() {
  const auto blocks = static_cast<ptrdiff_t>(events_.front().blocks);
  events_.pop_front();
  hashes_.erase(hashes_.begin(), hashes_.begin() + blocks);
}

void CacheEventLog::Stored(BlockHash parent, BlockHash hash) {
  Append(Kind::kStored, parent, hash);
  stored_[hash] = {parent, next_age_++};
}

void CacheEventLog::Removed(BlockHash hash) {
  Append(Kind::kRemoved, BlockHash(), hash);
  stored_.erase(hash);
}

void CacheEventLog::Cleared() {
  Append(Kind::kCleared, BlockHash(), BlockHash());
  stored_.clear();
}

std::optional<std::vector<CacheEvent>> CacheEventLog::Since(uint64_t sequence,
                                                            uint64_t most) {
  std::vector<CacheEvent> events;
  if (sequence >= last_) return events;
  const uint64_t first = last_ - events_.size() + 1;
  if (sequence + 1 < first) return std::nullopt;
  // Those that are asked for are the last ones, as a rule.
  size_t at = events_.size();
  auto hash = hashes_.end();
  while (first + at > sequence + 1) {
    hash -= static_cast<ptrdiff_t>(events_[--at].blocks);
  }
  uint64_t blocks = 0;
  for (; at < events_.size() && (events.empty() || blocks < most); ++at) {
    const Record& record = events_[at];
    const auto end = hash + static_cast<ptrdiff_t>(record.blocks);
    CacheEvent& event = events.emplace_back();
    event.sequence = first + at;
    switch (record.kind) {
      case Kind::kStored:
        event.change = BlocksStored{record.parent, {hash, end}};
        break;
      case Kind::kRemoved:
        event.change = BlocksRemoved{{hash, end}};
        break;
      case Kind::kCleared:
        event.change = CacheCleared{};
        break;
    }
    hash = end;
    blocks += std::max<uint64_t>(record.blocks, 1);
    read_ = std::max(read_, event.sequence);
  }
  return events;
}

CacheSnapshot CacheEventLog::Snapshot() {
  // A parent stored again after its child (evicted in between) cannot happen:
  // leaves are evicted first.
  std::vector<std::pair<uint64_t, BlockHash>> nodes;
  nodes.reserve(stored_.size());
  for (const auto& [hash, node] : stored_) nodes.emplace_back(node.age, hash);
  std::sort(nodes.begin(), nodes.end());
  CacheSnapshot out;
  out.sequence = read_ = last_;
  for (const auto& [age, hash] : nodes) {
    const BlockHash parent = stored_.find(hash)->second.parent;
    if (parent && !out.chains.empty() &&
        out.chains.back().hashes.back() == parent) {
      out.chains.back().hashes.push_back(hash);
    } else {
      out.chains.push_back({parent, {hash}});
    }
  }
  return out;
}

}  // namespace penstock
