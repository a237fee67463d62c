#include "kvstore/core/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace penstock {

PrefixCache::PrefixCache(BlockPool* pool, const BlockHasher* hasher,
                         CacheEventLog* log)
    : pool_(pool), hasher_(hasher), log_(log) {
  pool_->SetObserver(this);
}

PrefixCache::~PrefixCache() {
  Clear();
  pool_->SetObserver(nullptr);
}

const PrefixCache::Entry* PrefixCache::Find(
    BlockHash parent, BlockHash hash, absl::Span<const TokenId> tokens) const {
  auto it = by_hash_.find(hash);
  if (it == by_hash_.end()) return nullptr;
  const Entry& entry = entries_[it->second];
  const bool same = entry.parent == parent &&
                    std::equal(tokens.begin(), tokens.end(),
                               entry.tokens.begin(), entry.tokens.end());
  return same ? &entry : nullptr;
}

PrefixCache::Entry* PrefixCache::Find(BlockHash parent, BlockHash hash,
                                      absl::Span<const TokenId> tokens) {
  return const_cast<Entry*>(std::as_const(*this).Find(parent, hash, tokens));
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
    found.in_use += pool_->Users(entry->block) > 0;
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
    Entry* entry = Find(parent, hash, block);
    if (entry == nullptr) break;
    // Holding first takes the entry out of the eviction order, so that its
    // position there may change.
    holds.push_back(pool_->TryHold(entry->block));
    CHECK(holds.back()) << "a cached block must be live";
    entry->last_use = tick_;
    parent = hash;
  }
  return holds;
}

BlockHold PrefixCache::Hold(const TierKey& key) {
  Entry* entry = Find(key.parent, key.hash, key.tokens);
  if (entry == nullptr) return {};
  BlockHold hold = pool_->TryHold(entry->block);
  CHECK(hold) << "a cached block must be live";
  entry->last_use = ++tick_;
  return hold;
}

BlockHold PrefixCache::Insert(BlockHash parent, BlockHash hash,
                              absl::Span<const TokenId> tokens,
                              BlockRef block) {
  CHECK(tokens.size() == kBlockTokens);
  CHECK(pool_->References(block) > 0);
  if (!by_hash_.try_emplace(hash, block.index).second) {
    const Entry* existing = Find(parent, hash, tokens);
    return pool_->TryHold(existing == nullptr ? block : existing->block);
  }
  Entry& entry = Vacant(block);
  entry.hash = hash;
  entry.parent = parent;
  entry.block = block;
  std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  entry.last_use = ++tick_;
  BlockHash announced_parent;  // none: the chain starts here
  if (auto it = by_hash_.find(parent); it != by_hash_.end()) {
    Entry& above = entries_[it->second];
    entry.parent_block = it->second;
    entry.depth = above.depth + 1;
    announced_parent = parent;
    AddChild(above);
  }
  pool_->SetCached(block, true);
  log_->Stored(announced_parent, hash);
  return pool_->TryHold(block);
}

// Grows by doubling: a pool may be much larger than what is ever used.
PrefixCache::Entry& PrefixCache::Vacant(BlockRef block) {
  const auto at = static_cast<size_t>(block.index);
  if (at >= entries_.size()) {
    const auto most = static_cast<size_t>(pool_->total());
    entries_.resize(std::min(most, std::max(at + 1, 2 * entries_.size())));
  }
  entries_[at] = Entry();
  return entries_[at];
}

PrefixCache::Order PrefixCache::OrderOf(const Entry& entry) {
  return {entry.last_use, -entry.depth, entry.hash, entry.block.index};
}

PrefixCache::ColdOrder PrefixCache::ColdOrderOf(const Entry& entry) {
  return {entry.last_use, entry.depth, entry.hash, entry.block.index};
}

void PrefixCache::OnReclaimable(BlockRef block) {
  const Entry& entry = entries_[block.index];
  if (!entry.hash) return;
  if (entry.children == 0) leaves_.insert(OrderOf(entry));
  if (tracks_cold_ && !entry.offered) cold_.insert(ColdOrderOf(entry));
}

void PrefixCache::OnInUse(BlockRef block) {
  const Entry& entry = entries_[block.index];
  if (!entry.hash) return;
  if (entry.children == 0) leaves_.erase(OrderOf(entry));
  if (tracks_cold_ && !entry.offered) cold_.erase(ColdOrderOf(entry));
}

void PrefixCache::TrackCold() {
  CHECK(by_hash_.empty());
  tracks_cold_ = true;
}

std::optional<PrefixCache::ColdBlock> PrefixCache::NextCold() const {
  if (cold_.empty()) return std::nullopt;
  const Entry& entry = entries_[cold_.begin()->block];
  return ColdBlock{
      {entry.hash, entry.parent, entry.tokens}, entry.block, entry.depth};
}

void PrefixCache::SetOffered(const ColdBlock& cold) {
  Entry& entry = entries_[cold.block.index];
  CHECK(entry.block == cold.block && cold_.erase(ColdOrderOf(entry)) == 1);
  entry.offered = true;
}

void PrefixCache::AddChild(Entry& parent) {
  if (parent.children++ == 0) leaves_.erase(OrderOf(parent));
}

void PrefixCache::DropChild(Entry& parent) {
  if (--parent.children == 0 &&
      pool_->StateOf(parent.block.index) == BlockState::kCached) {
    leaves_.insert(OrderOf(parent));
  }
}

int PrefixCache::Evict(int count) {
  int freed = 0;
  while (freed < count && !leaves_.empty()) {
    Erase(entries_[leaves_.begin()->block]);
    ++freed;
  }
  return freed;
}

void PrefixCache::Erase(Entry& entry) {
  leaves_.erase(OrderOf(entry));
  cold_.erase(ColdOrderOf(entry));
  const BlockHash hash = std::exchange(entry.hash, BlockHash());
  by_hash_.erase(hash);
  pool_->SetCached(entry.block, false);
  log_->Removed(hash);
  if (entry.parent_block >= 0) DropChild(entries_[entry.parent_block]);
}

void PrefixCache::CountBlocks(BlockCensus& census) const {
  for (const Entry& entry : entries_) {
    if (entry.hash) census.AddCached(entry.block);
  }
}

void PrefixCache::Clear() {
  if (by_hash_.empty()) return;
  std::vector<BlockRef> blocks;
  blocks.reserve(by_hash_.size());
  for (const Entry& entry : entries_) {
    if (entry.hash) blocks.push_back(entry.block);
  }
  entries_.clear();
  by_hash_.clear();
  leaves_.clear();
  cold_.clear();
  for (BlockRef block : blocks) pool_->SetCached(block, false);
  log_->Cleared();
}

}  // namespace penstock
