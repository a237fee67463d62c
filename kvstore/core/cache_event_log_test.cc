#include "kvstore/core/cache_event_log.h"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using Hashes = std::vector<BlockHash>;

Hashes StoredBy(const CacheEvent& event) {
  return std::get<BlocksStored>(event.change).hashes;
}

TEST(CacheEventLogTest, AChainIsOneEventUntilItIsRead) {
  CacheEventLog log;
  log.Stored(BlockHash(), BlockHash(1));
  log.Stored(BlockHash(1), BlockHash(2));
  EXPECT_EQ(log.last_sequence(), 1u);
  auto events = log.Since(0);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].sequence, 1u);
  EXPECT_EQ(StoredBy((*events)[0]), (Hashes{BlockHash(1), BlockHash(2)}));
  log.Stored(BlockHash(2), BlockHash(3));
  EXPECT_EQ(log.last_sequence(), 2u);
  EXPECT_EQ(StoredBy((*log.Since(0))[0]), (Hashes{BlockHash(1), BlockHash(2)}));
  events = log.Since(1);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(std::get<BlocksStored>((*events)[0].change).parent, BlockHash(2));
  EXPECT_EQ(log.Since(2)->size(), 0u);
}

TEST(CacheEventLogTest, ASnapshotReadsToo) {
  CacheEventLog log;
  log.Stored(BlockHash(), BlockHash(1));
  EXPECT_EQ(log.Snapshot().sequence, 1u);
  log.Stored(BlockHash(1), BlockHash(2));
  EXPECT_EQ(log.last_sequence(), 2u);
}

TEST(CacheEventLogTest, WhatDoesNotFollowIsAnotherEvent) {
  CacheEventLog log;
  log.Stored(BlockHash(), BlockHash(1));
  log.Stored(BlockHash(), BlockHash(2));   // another root
  log.Stored(BlockHash(1), BlockHash(3));  // below the one before the last
  log.Removed(BlockHash(3));
  log.Removed(BlockHash(2));  // with the one before
  log.Cleared();
  log.Cleared();
  EXPECT_EQ(log.last_sequence(), 6u);
  auto events = log.Since(3);
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ(std::get<BlocksRemoved>((*events)[0].change).hashes,
            (Hashes{BlockHash(3), BlockHash(2)}));
  EXPECT_TRUE(std::holds_alternative<CacheCleared>((*events)[1].change));
}

TEST(CacheEventLogTest, GivesAsManyBlocksAsAskedForAndKeepsAsManyAsItMay) {
  CacheEventLog log(4);
  for (uint64_t i = 1; i <= 5; ++i) {
    log.Stored(BlockHash(), BlockHash(i));
    log.Stored(BlockHash(i), BlockHash(10 * i));
  }
  EXPECT_EQ(log.last_sequence(), 5u);
  EXPECT_FALSE(log.Since(2).has_value());  // 3 has left
  ASSERT_EQ(log.Since(3)->size(), 2u);
  EXPECT_EQ(log.Since(3, 1)->size(), 1u);
  EXPECT_EQ(log.Since(3, 2)->size(), 1u);
  EXPECT_EQ(StoredBy(log.Since(3, 1)->front()),
            (Hashes{BlockHash(4), BlockHash(40)}));
  CacheEventLog tiny(1);
  tiny.Stored(BlockHash(), BlockHash(1));
  tiny.Stored(BlockHash(1), BlockHash(2));
  EXPECT_FALSE(tiny.Since(0).has_value());
  EXPECT_EQ(tiny.Since(1)->size(), 1u);
}

// Where each block's parent is: what a reader has to arrive at.
using Tree = std::map<BlockHash, BlockHash>;

void Store(const BlocksStored& stored, Tree& tree) {
  BlockHash parent = stored.parent;
  for (BlockHash hash : stored.hashes) {
    EXPECT_TRUE(!parent || tree.contains(parent)) << "parents come first";
    tree[hash] = parent;
    parent = hash;
  }
}

void Apply(const CacheEvent& event, Tree& tree) {
  if (const auto* stored = std::get_if<BlocksStored>(&event.change)) {
    Store(*stored, tree);
  } else if (const auto* removed = std::get_if<BlocksRemoved>(&event.change)) {
    for (BlockHash hash : removed->hashes) EXPECT_EQ(tree.erase(hash), 1u);
  } else {
    tree.clear();
  }
}

// Two readers that look at different times, beside a plain tree.
TEST(CacheEventLogTest, EveryReaderArrivesAtTheSame) {
  SeededRandom random(11);
  CacheEventLog log;
  Tree truth;
  Tree trees[2];
  uint64_t read[2] = {};
  Hashes chain;  // of a tree that grows and shrinks at one end
  for (uint64_t i = 1; i <= 5000; ++i) {
    if (const auto what = random.Below(100); what == 0) {
      log.Cleared();
      truth.clear();
      chain.clear();
    } else if (what < 60 || chain.empty()) {
      const BlockHash parent =
          chain.empty() || what < 10 ? BlockHash() : chain.back();
      log.Stored(parent, BlockHash(i));
      truth[BlockHash(i)] = parent;
      chain.push_back(BlockHash(i));
    } else {
      log.Removed(chain.back());
      truth.erase(chain.back());
      chain.pop_back();
    }
    for (int reader : {0, 1}) {
      if (random.Below(reader == 0 ? 7 : 60) != 0) continue;
      const auto events = log.Since(read[reader]);
      for (const CacheEvent& event : *events) {
        EXPECT_EQ(event.sequence, ++read[reader]);
        Apply(event, trees[reader]);
      }
      EXPECT_EQ(read[reader], log.last_sequence());
      EXPECT_EQ(trees[reader], truth);
    }
  }
  Tree snapshot;
  for (const BlocksStored& stored : log.Snapshot().chains) {
    Store(stored, snapshot);
  }
  EXPECT_EQ(snapshot, truth);
}

}  // namespace
}  // namespace penstock
