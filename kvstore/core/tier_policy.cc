#include "kvstore/core/tier_policy.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {
namespace {

// A page that is no cheaper to fetch than to recompute still has an order
// among its like.
constexpr double kLeastWorth = 1e-18;

double Worth(const TierPolicy::Cost& cost) {
  CHECK(cost.bytes > 0);
  const double saved = cost.recompute_seconds - cost.fetch_seconds;
  return std::max(saved / static_cast<double>(cost.bytes), kLeastWorth);
}

}  // namespace

TierPolicy::Order TierPolicy::OrderOf(BlockHash hash, const Entry& entry) {
  return {entry.priority, entry.last_use, hash};
}

void TierPolicy::Touch(BlockHash hash, Entry& entry) {
  const bool leaf = IsLeaf(hash);
  if (leaf) leaves_.erase(OrderOf(hash, entry));
  ++entry.uses;
  entry.priority = clock_ + static_cast<double>(entry.uses) * entry.worth;
  entry.last_use = ++tick_;
  if (leaf) leaves_.insert(OrderOf(hash, entry));
}

void TierPolicy::Add(BlockHash hash, BlockHash parent, const Cost& cost) {
  auto [it, is_new] = entries_.try_emplace(hash);
  Entry& entry = it->second;
  if (is_new) {
    entry.parent = parent;
    entry.worth = Worth(cost);
    if (parent && ++children_[parent] == 1) {
      if (auto above = entries_.find(parent); above != entries_.end()) {
        leaves_.erase(OrderOf(parent, above->second));
      }
    }
  }
  Touch(hash, entry);
}

void TierPolicy::Use(BlockHash hash) {
  if (auto it = entries_.find(hash); it != entries_.end()) {
    Touch(hash, it->second);
  }
}

void TierPolicy::Remove(BlockHash hash) {
  auto it = entries_.find(hash);
  if (it == entries_.end()) return;
  leaves_.erase(OrderOf(hash, it->second));
  const BlockHash parent = it->second.parent;
  entries_.erase(it);
  auto siblings = children_.find(parent);
  if (siblings == children_.end() || --siblings->second > 0) return;
  children_.erase(siblings);
  if (auto above = entries_.find(parent); above != entries_.end()) {
    leaves_.insert(OrderOf(parent, above->second));
  }
}

std::optional<BlockHash> TierPolicy::Victim() const {
  if (leaves_.empty()) return std::nullopt;
  return leaves_.begin()->hash;
}

std::optional<BlockHash> TierPolicy::Evict() {
  const std::optional<BlockHash> victim = Victim();
  if (victim.has_value()) {
    clock_ = std::max(clock_, leaves_.begin()->priority);
    Remove(*victim);
  }
  return victim;
}

double TierPolicy::Priority(BlockHash hash) const {
  auto it = entries_.find(hash);
  CHECK(it != entries_.end());
  return it->second.priority;
}

}  // namespace penstock
