#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/block_hash.h"
#include "kvstore/core/block_census.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/cache_event_log.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// Token-block hash chain -> cached block of this worker, least recently used
// out first, leaves before their parents. Tokens are compared, not only
// hashes: a collision costs a miss, never a wrong page. Single-threaded, the
// engine thread's. Pool, hasher and log outlive it.
class PrefixCache : public CachedBlockObserver {
 public:
  PrefixCache(BlockPool* pool, const BlockHasher* hasher, CacheEventLog* log);
  ~PrefixCache() override;

  // Holds on the longest cached run of leading full blocks of `tokens`, at most
  // `max_blocks`, in order. Marks them as just used.
  std::vector<BlockHold> Match(BlockHash root, absl::Span<const TokenId> tokens,
                               int max_blocks);

  // A hold on the block of exactly this key, as Match would give it; empty: it
  // is not cached.
  BlockHold Hold(const TierKey& key);

  // What Match would give, without holding or touching anything.
  struct Found {
    int blocks = 0;
    int in_use = 0;  // of them, held by somebody who does not just keep them
  };
  Found Look(BlockHash root, absl::Span<const TokenId> tokens,
             int max_blocks) const;

  // Publishes a full, computed block under its hash and returns a hold on the
  // block that the cache keeps for it: `block` itself, or, when the same tokens
  // were cached before, the earlier one, which the caller should use from now
  // on (equal tokens have equal pages). Precondition: hash == Next(parent,
  // tokens), tokens.size() == kBlockTokens, the block is held.
  BlockHold Insert(BlockHash parent, BlockHash hash,
                   absl::Span<const TokenId> tokens, BlockRef block);

  // Frees up to `count` blocks that nobody holds; returns how many.
  int Evict(int count);

  // A cached block that nobody holds, and that has not been offered to a tier
  // below yet.
  struct ColdBlock {
    TierKey key;
    BlockRef block;
    int depth = 0;  // cached blocks before it in its chain
  };
  // From now on keeps count of those. Precondition: nothing is cached.
  void TrackCold();
  // The one used longest ago; within one use, parents before their children.
  std::optional<ColdBlock> NextCold() const;
  // It is cold no more, for as long as it is cached.
  // Precondition: it came from NextCold, and nothing was changed since.
  void SetOffered(const ColdBlock& cold);

  void CountBlocks(BlockCensus& census) const;

  int size() const { return static_cast<int>(by_hash_.size()); }

  // Forgets everything; blocks in use stay with their holders.
  void Clear();

 private:
  struct Entry {
    BlockHash hash;  // none: the block is not cached
    BlockHash parent;
    BlockRef block;
    BlockIndex parent_block = -1;  // none: the parent is not cached
    std::array<TokenId, kBlockTokens> tokens;
    uint64_t last_use = 0;
    int depth = 0;
    int children = 0;
    bool offered = false;  // to a tier below
  };
  // Oldest use first; within one use the deepest first.
  struct Order {
    uint64_t last_use;
    int negative_depth;
    BlockHash hash;
    BlockIndex block;
    friend auto operator<=>(const Order&, const Order&) = default;
  };

  void OnReclaimable(BlockRef block) override;
  void OnInUse(BlockRef block) override;
  // Null: not cached with these tokens.
  Entry* Find(BlockHash parent, BlockHash hash,
              absl::Span<const TokenId> tokens);
  const Entry* Find(BlockHash parent, BlockHash hash,
                    absl::Span<const TokenId> tokens) const;
  Entry& Vacant(BlockRef block);
  // Oldest use first; within one use the parents first.
  struct ColdOrder {
    uint64_t last_use;
    int depth;
    BlockHash hash;
    BlockIndex block;
    friend auto operator<=>(const ColdOrder&, const ColdOrder&) = default;
  };

  static Order OrderOf(const Entry& entry);
  static ColdOrder ColdOrderOf(const Entry& entry);
  void AddChild(Entry& parent);
  void DropChild(Entry& parent);
  void Erase(Entry& entry);

  BlockPool* pool_;
  const BlockHasher* hasher_;
  CacheEventLog* log_;
  std::vector<Entry> entries_;  // by block index, as far as any was cached
  absl::flat_hash_map<BlockHash, BlockIndex> by_hash_;
  std::set<Order> leaves_;  // reclaimable entries without children
  bool tracks_cold_ = false;
  std::set<ColdOrder> cold_;
  uint64_t tick_ = 0;
};

}  // namespace penstock
