#include "kvstore/core/prefix_cache.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {

PrefixCache::PrefixCache(BlockPool* pool, const BlockHasher* hasher,
                         CacheEventLog* log)
    : pool_(pool), hasher_(hasher), log_(log), by_block_(pool->total()) {
  pool_->SetObserver(this);
}

PrefixCache::~PrefixCache() {
  Clear();
  pool_->SetObserver(nullptr);
}

const PrefixCache::Entry* PrefixCache::Find(
    BlockHash parent, BlockHash hash, absl::Span<const TokenId> tokens) const {
  auto it = entries_.find(hash);
  if (it == entries_.end() || it->second.parent != parent ||
      !std::equal(tokens.begin(), tokens.end(), it->second.tokens.begin(),
                  it->second.tokens.end())) {
    return nullptr;
  }
  return &it->second;
}

PrefixCache::Found PrefixCache::Look(BlockHash root,
                                     absl::Span<const TokenId> tokens,
                                     int max_blocks) const {
  Found found;
  BlockHash parent = root;
  while (found.blocks < max_blocks &&
         tokens.size() >=
             static_cast<size_t>(found.blocks + 1) * kBlockTokens) {
    auto block = tokens.subspan(found.blocks * kBlockTokens, kBlockTokens);
    BlockHash hash = hasher_->Next(parent, block);
    const Entry* entry = Find(parent, hash, block);
    if (entry == nullptr) break;
    parent = hash;
    ++found.blocks;
    found.in_use += pool_->References(entry->block) > 0;
  }
  return found;
}

std::vector<BlockHold> PrefixCache::Match(BlockHash root,
                                          absl::Span<const TokenId> tokens,
                                          int max_blocks) {
  std::vector<BlockHold> holds;
  BlockHash parent = root;
  ++tick_;
  while (static_cast<int>(holds.size()) < max_blocks &&
         tokens.size() >= (holds.size() + 1) * kBlockTokens) {
    auto block = tokens.subspan(holds.size() * kBlockTokens, kBlockTokens);
    BlockHash hash = hasher_->Next(parent, block);
    if (Find(parent, hash, block) == nullptr) break;
    Entry& entry = entries_.find(hash)->second;
    // Holding first takes the entry out of the eviction order, so that its
    // position there may change.
    holds.push_back(pool_->TryHold(entry.block));
    CHECK(holds.back()) << "a cached block must be live";
    entry.last_use = tick_;
    parent = hash;
  }
  return holds;
}

BlockHold PrefixCache::Insert(BlockHash parent, BlockHash hash,
                              absl::Span<const TokenId> tokens,
                              BlockRef block) {
  CHECK(tokens.size() == kBlockTokens);
  CHECK(pool_->References(block) > 0);
  if (entries_.contains(hash)) {
    const Entry* existing = Find(parent, hash, tokens);
    return pool_->TryHold(existing == nullptr ? block : existing->block);
  }
  Entry entry;
  entry.parent = parent;
  entry.block = block;
  std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  entry.last_use = ++tick_;
  BlockHash announced_parent;  // none: the chain starts here
  if (auto it = entries_.find(parent); it != entries_.end()) {
    entry.depth = it->second.depth + 1;
    announced_parent = parent;
  }
  AddChild(parent);
  entries_.emplace(hash, entry);
  HashOf(block) = hash;
  pool_->SetCached(block, true);
  log_->Stored(announced_parent, hash);
  return pool_->TryHold(block);
}

PrefixCache::Order PrefixCache::OrderOf(BlockHash hash,
                                        const Entry& entry) const {
  return {entry.last_use, -entry.depth, hash};
}

void PrefixCache::OnReclaimable(BlockRef block) {
  const BlockHash hash = HashOf(block);
  if (!hash) return;
  const Entry& entry = entries_.find(hash)->second;
  if (entry.children == 0) leaves_.insert(OrderOf(hash, entry));
}

void PrefixCache::OnInUse(BlockRef block) {
  const BlockHash hash = HashOf(block);
  if (!hash) return;
  const Entry& entry = entries_.find(hash)->second;
  if (entry.children == 0) leaves_.erase(OrderOf(hash, entry));
}

void PrefixCache::AddChild(BlockHash parent) {
  auto it = entries_.find(parent);
  if (it == entries_.end()) return;
  if (it->second.children++ == 0) leaves_.erase(OrderOf(parent, it->second));
}

void PrefixCache::DropChild(BlockHash parent) {
  auto it = entries_.find(parent);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (--entry.children == 0 &&
      pool_->StateOf(entry.block.index) == BlockState::kCached) {
    leaves_.insert(OrderOf(parent, entry));
  }
}

int PrefixCache::Evict(int count) {
  int freed = 0;
  while (freed < count && !leaves_.empty()) {
    Erase(leaves_.begin()->hash);
    ++freed;
  }
  return freed;
}

void PrefixCache::Erase(BlockHash hash) {
  auto it = entries_.find(hash);
  Entry entry = it->second;
  leaves_.erase(OrderOf(hash, entry));
  HashOf(entry.block) = {};
  entries_.erase(it);
  pool_->SetCached(entry.block, false);
  log_->Removed(hash);
  DropChild(entry.parent);
}

void PrefixCache::Clear() {
  if (entries_.empty()) return;
  std::vector<BlockRef> blocks;
  blocks.reserve(entries_.size());
  for (const auto& [hash, entry] : entries_) blocks.push_back(entry.block);
  // Sorted, so that the free list comes out the same every time.
  std::sort(blocks.begin(), blocks.end());
  entries_.clear();
  leaves_.clear();
  for (BlockRef block : blocks) {
    HashOf(block) = {};
    pool_->SetCached(block, false);
  }
  log_->Cleared();
}

}  // namespace penstock
