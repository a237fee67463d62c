#include "kvstore/core/prefix_cache.h"

#include <numeric>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class PrefixCacheTest : public testing::Test {
 protected:
  std::vector<TokenId> Tokens(int count, TokenId first = 100) {
    std::vector<TokenId> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }

  // Caches all full blocks of `tokens`; the holds stay with the caller.
  std::vector<BlockHold> Store(const std::vector<TokenId>& tokens) {
    int blocks = tokens.size() / kBlockTokens;
    auto holds = *pool_.TryAllocate(blocks);
    BlockHash parent = root_;
    for (int i = 0; i < blocks; ++i) {
      auto span =
          absl::MakeConstSpan(tokens).subspan(i * kBlockTokens, kBlockTokens);
      BlockHash hash = hasher_.Next(parent, span);
      holds[i] = cache_.Insert(parent, hash, span, holds[i].ref());
      parent = hash;
    }
    return holds;
  }

  HashSecret secret_{"test key"};
  BlockHasher hasher_{secret_};
  BlockHash root_ = hasher_.Root({ContentId(7), "", "", ""});
  BlockPool pool_{8};
  CacheEventLog log_;
  PrefixCache cache_{&pool_, &hasher_, &log_};
};

TEST_F(PrefixCacheTest, HoldsTheBlockOfExactlyOneKey) {
  const auto tokens = Tokens(2 * kBlockTokens);
  const BlockIndex second = Store(tokens)[1].index();
  TierKey key;
  std::copy_n(tokens.begin() + kBlockTokens, kBlockTokens, key.tokens.begin());
  key.parent = hasher_.Next(
      root_, absl::MakeConstSpan(tokens).subspan(0, kBlockTokens));
  key.hash = hasher_.Next(key.parent, key.tokens);
  const BlockHold hold = cache_.Hold(key);
  ASSERT_TRUE(hold);
  EXPECT_EQ(hold.index(), second);
  EXPECT_EQ(cache_.Evict(2), 0) << "a child that is held keeps its parent";
  TierKey other = key;
  other.tokens[3] ^= 1;
  EXPECT_FALSE(cache_.Hold(other));
  other = key;
  other.parent = root_;
  EXPECT_FALSE(cache_.Hold(other));
  other = key;
  other.hash = BlockHash(4711);
  EXPECT_FALSE(cache_.Hold(other));
}

TEST_F(PrefixCacheTest, MatchesTheLongestRunOfFullBlocks) {
  auto tokens = Tokens(3 * kBlockTokens + 5);
  std::vector<BlockIndex> stored;
  {
    auto holds = Store(tokens);
    for (auto& hold : holds) stored.push_back(hold.index());
  }
  EXPECT_EQ(pool_.counts().cached, 3);
  auto match = cache_.Match(root_, tokens, 99);
  ASSERT_EQ(match.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(match[i].index(), stored[i]);
  EXPECT_EQ(cache_.Look(root_, tokens, 2).blocks, 2);
  tokens[20] = 1;
  EXPECT_EQ(cache_.Look(root_, tokens, 99).blocks, 1);
  EXPECT_EQ(cache_.Look(root_, tokens, 99).in_use, 1);
  match[0].SetKept(true);
  EXPECT_EQ(cache_.Look(root_, tokens, 99).in_use, 0)
      << "it counts among those to be had";
  match.clear();
  EXPECT_EQ(cache_.Look(root_, tokens, 99).in_use, 0);
  EXPECT_EQ(
      cache_.Look(hasher_.Root({ContentId(7), "", "tenant", ""}), tokens, 99)
          .blocks,
      0);
}

TEST_F(PrefixCacheTest, EqualTokensShareOneBlock) {
  auto tokens = Tokens(kBlockTokens);
  auto first = Store(tokens);
  auto second = Store(tokens);
  EXPECT_EQ(first[0].index(), second[0].index());
  EXPECT_EQ(pool_.counts().active, 1);
}

TEST_F(PrefixCacheTest, EvictsTheLeastRecentlyUsedLeafFirst) {
  auto old_chain = Tokens(2 * kBlockTokens, 100);
  auto new_chain = Tokens(2 * kBlockTokens, 500);
  Store(old_chain);
  Store(new_chain);
  cache_.Match(root_, old_chain, 99);  // now the newer one
  EXPECT_EQ(cache_.Evict(1), 1);
  EXPECT_EQ(cache_.Look(root_, new_chain, 99).blocks, 1);
  EXPECT_EQ(cache_.Look(root_, old_chain, 99).blocks, 2);
  EXPECT_EQ(cache_.Evict(99), 3);
  EXPECT_EQ(cache_.size(), 0);
  EXPECT_EQ(pool_.counts().free, 8);
}

TEST_F(PrefixCacheTest, NeverEvictsWhatIsHeld) {
  auto tokens = Tokens(2 * kBlockTokens);
  auto holds = Store(tokens);
  EXPECT_EQ(cache_.Evict(99), 0);
  holds.pop_back();
  EXPECT_EQ(cache_.Evict(99), 1);
  EXPECT_EQ(cache_.Look(root_, tokens, 99).blocks, 1);
}

TEST_F(PrefixCacheTest, EventsReplayAndSnapshotAgree) {
  Store(Tokens(3 * kBlockTokens));
  cache_.Evict(1);
  auto events = log_.Since(0);
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 2u);
  const auto& stored = std::get<BlocksStored>((*events)[0].change);
  EXPECT_EQ(stored.parent, BlockHash());
  ASSERT_EQ(stored.hashes.size(), 3u);
  EXPECT_EQ(std::get<BlocksRemoved>((*events)[1].change).hashes,
            std::vector<BlockHash>{stored.hashes[2]});
  auto snapshot = log_.Snapshot();
  EXPECT_EQ(snapshot.sequence, 2u);
  ASSERT_EQ(snapshot.chains.size(), 1u);
  EXPECT_EQ(snapshot.chains[0].parent, BlockHash());
  EXPECT_EQ(
      snapshot.chains[0].hashes,
      std::vector<BlockHash>(stored.hashes.begin(), stored.hashes.begin() + 2));
}

// Random stores, matches and evictions: the pool conserves its blocks, and a
// match is always a prefix of what was stored.
TEST_F(PrefixCacheTest, RandomUseKeepsChainsWhole) {
  SeededRandom random(3);
  std::vector<std::vector<BlockHold>> running;
  for (int i = 0; i < 2000; ++i) {
    auto tokens =
        Tokens(kBlockTokens * (1 + random.Below(3)), 100 * random.Below(4));
    int blocks = tokens.size() / kBlockTokens;
    switch (random.Below(3)) {
      case 0:
        if (pool_.free() < blocks) cache_.Evict(blocks - pool_.free());
        if (pool_.free() >= blocks) running.push_back(Store(tokens));
        break;
      case 1: {
        auto match = cache_.Match(root_, tokens, 99);
        EXPECT_LE(match.size(), static_cast<size_t>(blocks));
        break;
      }
      default:
        if (!running.empty()) running.erase(running.begin());
    }
    pool_.CheckConservation();
  }
}

TEST_F(PrefixCacheTest, NamesColdBlocksOncePerLifeParentsFirst) {
  cache_.TrackCold();
  auto older = Store(Tokens(2 * kBlockTokens));
  auto newer = Store(Tokens(kBlockTokens, 500));
  EXPECT_FALSE(cache_.NextCold().has_value()) << "somebody holds them";
  newer.clear();
  older.clear();
  std::vector<TokenId> first_tokens;
  BlockHash parent = root_;
  for (int depth : {0, 1, 0}) {
    auto cold = cache_.NextCold();
    ASSERT_TRUE(cold.has_value());
    EXPECT_EQ(cold->depth, depth);
    if (depth == 1) {
      EXPECT_EQ(cold->key.parent, parent);
    }
    EXPECT_EQ(hasher_.Next(cold->key.parent, cold->key.tokens), cold->key.hash);
    parent = cold->key.hash;
    first_tokens.push_back(cold->key.tokens[0]);
    cache_.SetOffered(*cold);
  }
  EXPECT_EQ(first_tokens, (std::vector<TokenId>{100, 116, 500}));
  EXPECT_FALSE(cache_.NextCold().has_value());
  // Used and cold again: it was offered already.
  cache_.Match(root_, Tokens(2 * kBlockTokens), 99);
  EXPECT_FALSE(cache_.NextCold().has_value());
  // Evicted and computed again: it is another block.
  EXPECT_EQ(cache_.Evict(8), 3);
  Store(Tokens(kBlockTokens)).clear();
  EXPECT_TRUE(cache_.NextCold().has_value());
}

TEST_F(PrefixCacheTest, WhatIsInUseOrGoneIsNotCold) {
  cache_.TrackCold();
  Store(Tokens(2 * kBlockTokens)).clear();
  auto held = cache_.Match(root_, Tokens(2 * kBlockTokens), 1);
  auto cold = cache_.NextCold();
  ASSERT_TRUE(cold.has_value());
  EXPECT_EQ(cold->depth, 1);
  EXPECT_EQ(cache_.Evict(1), 1);
  EXPECT_FALSE(cache_.NextCold().has_value());
  held.clear();
  EXPECT_EQ(cache_.NextCold()->depth, 0);
  cache_.Clear();
  EXPECT_FALSE(cache_.NextCold().has_value());
}

}  // namespace
}  // namespace penstock
