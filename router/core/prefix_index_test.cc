#include "router/core/prefix_index.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/prefix_index_fixture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PrefixIndexTest, ADeadWorkersSlotIsFreeWhenNothingNamesIt) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  // A run each: more than one event sweeps.
  for (uint64_t first = 1000; first < 301'000; first += 1000) {
    ASSERT_TRUE(a.StoreRoot(HashChain(first, 2)).ok());
  }
  index.RemoveWorker(kA);
  EXPECT_EQ(index.distinct_blocks(), 600u) << "not at once";
  EXPECT_THAT(MatchOf(index, HashChain(1000, 2)), IsEmpty());
  EXPECT_TRUE(index.Match(HashChain(1000, 2)).empty());
  EXPECT_EQ(index.memberships(), 0u);
  EXPECT_EQ(index.workers(), 1u);
  EXPECT_EQ(index.AddWorker(10), 2u) << "not the slot that is named yet";
  // What another stores while the memory comes back is the other's alone.
  ASSERT_TRUE(b.StoreRoot(HashChain(300'000, 2)).ok());
  EXPECT_THAT(MatchOf(index, HashChain(300'000, 2)),
              ElementsAre(Holding{kB, 2}));
  EXPECT_EQ(index.memberships(), 2u);
  int events = 0;
  for (; index.distinct_blocks() > 2 && events < 10; ++events) {
    ASSERT_TRUE(b.Remove({BlockHash(5)}).ok());
  }
  EXPECT_EQ(index.distinct_blocks(), 2u) << "after " << events << " events";
  EXPECT_EQ(index.AddWorker(10), kA);
  index.CheckStructure();
}

TEST(PrefixIndexTest, HostileSizesAndHashesAreRefused) {
  PrefixIndex index;
  IndexFeed a(index, 4);
  EXPECT_EQ(a.StoreRoot(HashChain(100, 5)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      index.Apply(kA, {1, BlocksStored{BlockHash(), {BlockHash()}}}).code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(index.Replace(kA, {9, {{BlockHash(), HashChain(100, 5)}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index.Replace(kA, {9, {{BlockHash(), {BlockHash()}}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index.memberships(), 0u);
  EXPECT_EQ(index.ExpectedSequence(kA), 1u);
}

TEST(PrefixIndexTest, RunsSplitWhereOwnersDifferAndJoinAgain) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 20)).ok());
  EXPECT_EQ(index.runs(), 1u);
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 5)).ok());
  EXPECT_EQ(index.runs(), 2u);
  ASSERT_TRUE(b.Store(BlockHash(104), HashChain(105, 15)).ok());
  EXPECT_EQ(index.runs(), 1u);
  // As a cache evicts: the last block first.
  for (uint64_t hash = 119; hash >= 110; --hash) {
    ASSERT_TRUE(b.Remove({BlockHash(hash)}).ok());
    EXPECT_EQ(index.runs(), 2u) << hash;
  }
  EXPECT_THAT(MatchOf(index, HashChain(100, 20)),
              ElementsAre(Holding{kA, 20}, Holding{kB, 10}));
  ASSERT_TRUE(b.Clear().ok());
  EXPECT_EQ(index.runs(), 1u);
  ASSERT_TRUE(a.Clear().ok());
  EXPECT_EQ(index.runs(), 0u);
}

// Leaves go before what they hang below, and what was asked for stays.
TEST(PrefixIndexTest, ForgetsLeavesThatNobodyAskedFor) {
  PrefixIndex::Options options;
  options.max_bytes = 1 << 20;
  PrefixIndex index(options);
  IndexFeed a(index, 1 << 20);
  const std::vector<BlockHash> stem = HashChain(100, 10);
  ASSERT_TRUE(a.StoreRoot(stem).ok());
  for (uint64_t leaf = 1; leaf <= 20'000; ++leaf) {
    ASSERT_TRUE(a.Store(BlockHash(109), HashChain(leaf << 20, 5)).ok());
    ASSERT_EQ(index.Match(stem).BlocksOf(kA), 10) << leaf;
  }
  EXPECT_LT(index.distinct_blocks(), 100'000u);
  // Below what was forgotten nothing is taken in, and nothing is wrong.
  const size_t before = index.memberships();
  EXPECT_TRUE(a.Store(BlockHash((1 << 20) + 4), {BlockHash(77)}).ok());
  EXPECT_EQ(index.memberships(), before);
  // A snapshot makes it exact again.
  ASSERT_TRUE(index.Replace(kA, {1'000'000, {{BlockHash(), stem}}}).ok());
  EXPECT_EQ(index.Apply(kA, {1'000'001, BlocksStored{BlockHash(5), {}}}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(PrefixIndexTest, PredictionsCountForAWhile) {
  PrefixIndex::Options options;
  options.predicted.lifetime = absl::Seconds(5);
  PrefixIndex index(options);
  IndexFeed a(index), b(index);
  const Instant start = Instant::FromNanos(1'000'000'000'000);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 3)).ok());
  index.Predict(kA, HashChain(100, 6), start);
  index.Predict(kB, HashChain(100, 5), start);
  index.Predict(99, HashChain(100, 5), start);
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)),
              ElementsAre(Holding{kA, 6}, Holding{kB, 5}));
  EXPECT_EQ(index.memberships(), 3u) << "what workers said";
  // Nothing of the kind: they say so.
  ASSERT_TRUE(b.Remove({BlockHash(102)}).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)),
              ElementsAre(Holding{kA, 6}, Holding{kB, 2}));
  index.ExpirePredictions(start + absl::Milliseconds(4900));
  EXPECT_EQ(index.Match(HashChain(100, 9)).BlocksOf(kA), 6);
  index.ExpirePredictions(start + absl::Seconds(10));
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)), ElementsAre(Holding{kA, 3}));
}

TEST(PrefixIndexTest, PredictionsCanBeWithdrawn) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  const Instant now = Instant::FromNanos(1);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 3)).ok());
  index.Predict(kA, HashChain(100, 6), now);
  index.Predict(kB, HashChain(100, 5), now);
  index.Withdraw(kB, HashChain(100, 9));
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)), ElementsAre(Holding{kA, 6}));
  index.Withdraw(kA, HashChain(100, 9));
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)), ElementsAre(Holding{kA, 3}));
  index.Withdraw(99, HashChain(100, 9));
}

TEST(PrefixIndexTest, WhatAWorkerSaidNeedsNoPrediction) {
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 6)).ok());
  index.Predict(kA, HashChain(100, 6), Instant::FromNanos(1));
  ASSERT_TRUE(a.Remove({BlockHash(105)}).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 6)), ElementsAre(Holding{kA, 5}));
  ASSERT_TRUE(index.Replace(kA, {50, {}}).ok());
  EXPECT_TRUE(index.Match(HashChain(100, 6)).empty());
}

TEST(PrefixIndexTest, ADeadWorkersPredictionsAreNotTheNextOnes) {
  PrefixIndex index;
  IndexFeed a(index);
  index.Predict(kA, HashChain(100, 6), Instant::FromNanos(1));
  index.RemoveWorker(kA);
  EXPECT_TRUE(index.Match(HashChain(100, 6)).empty());
  IndexFeed next(index);
  EXPECT_TRUE(index.Match(HashChain(100, 6)).empty());
}

TEST(PrefixIndexTest, PredictionsAreBounded) {
  PrefixIndex::Options options;
  options.predicted.max_blocks = 100;
  PrefixIndex index(options);
  IndexFeed a(index);
  const Instant now = Instant::FromNanos(1);
  index.Predict(kA, HashChain(100, 1000), now);
  EXPECT_EQ(index.Match(HashChain(100, 1000)).deepest(), 50);
  for (uint64_t first = 2000; first < 50'000; first += 1000) {
    index.Predict(kA, HashChain(first, 40), now);
    EXPECT_EQ(index.Match(HashChain(first, 50)).deepest(), 40);
  }
  EXPECT_TRUE(index.Match(HashChain(2000, 40)).empty());
}

// A parent that two blocks claim in a ring, twice the same block: nothing a
// real hash can do.
TEST(PrefixIndexTest, HashesThatAreNoPrefixesDoNoHarm) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  const BlockHash x(7), y(8);
  CacheSnapshot ring{1, {{y, {x}}, {x, {y}}, {x, {y, x, y}}, {y, {y}}}};
  ASSERT_TRUE(index.Replace(kA, ring).ok());
  EXPECT_EQ(index.memberships(), 2u);
  index.CheckStructure();
  EXPECT_EQ(index.Dump(kA).chains.size(), 1u);
  ASSERT_TRUE(b.StoreRoot({x, x, y, x}).ok());
  index.CheckStructure();
  ASSERT_TRUE(b.Remove({x}).ok());
  ASSERT_TRUE(index.Replace(kA, {2, {}}).ok());
  index.CheckStructure();
  ASSERT_TRUE(b.Clear().ok());
  EXPECT_EQ(index.distinct_blocks(), 0u);
}

}  // namespace
}  // namespace penstock
