// The black-box cases of a prefix index, by their numbers. Those of choosing a
// worker and of serving (19 to 31) are with the policies and the router core.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/model/block_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/prefix_index.h"
#include "router/core/prefix_index_fixture.h"
#include "router/core/testing/prefix_exercise.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Real hashes: of the cluster key "key" and model content 9.
class RealHashes {
 public:
  RealHashes() : hasher_(HashSecret("key")) { scope_.model = ContentId(9); }

  std::vector<BlockHash> Chain(const std::vector<TokenId>& tokens) const {
    return hasher_.Chain(hasher_.Root(scope_), tokens);
  }
  BlockHasher::Scope& scope() { return scope_; }

 private:
  BlockHasher hasher_;
  BlockHasher::Scope scope_;
};

std::vector<TokenId> Tokens(int blocks, TokenId first = 1) {
  std::vector<TokenId> tokens(blocks * kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(PrefixIndexCases, Case01TheStoredPartOfAQueryMatches) {
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 3)).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 4)), ElementsAre(Holding{kA, 3}));
}

TEST(PrefixIndexCases, Case02EachOwnersDepth) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 5)).ok());
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 2)).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 8)),
              ElementsAre(Holding{kA, 5}, Holding{kB, 2}));
}

TEST(PrefixIndexCases, Case03SameContentUnderAnotherParent) {
  RealHashes hashes;
  PrefixIndex index;
  IndexFeed a(index);
  const std::vector<TokenId> tokens = Tokens(2);
  ASSERT_TRUE(a.StoreRoot(hashes.Chain(tokens)).ok());
  EXPECT_THAT(MatchOf(index, hashes.Chain(tokens)),
              ElementsAre(Holding{kA, 2}));
  const std::vector<TokenId> second(tokens.begin() + kBlockTokens,
                                    tokens.end());
  EXPECT_THAT(MatchOf(index, hashes.Chain(second)), IsEmpty());
}

TEST(PrefixIndexCases, Case04ADivergedQueryDoesNotRejoin) {
  RealHashes hashes;
  PrefixIndex index;
  IndexFeed a(index);
  std::vector<TokenId> tokens = Tokens(10);
  ASSERT_TRUE(a.StoreRoot(hashes.Chain(tokens)).ok());
  for (int i = kBlockTokens; i < 8 * kBlockTokens; ++i) tokens[i] = 7;
  EXPECT_THAT(MatchOf(index, hashes.Chain(tokens)),
              ElementsAre(Holding{kA, 1}));
}

TEST(PrefixIndexCases, Case05AHoleEndsTheMatchUntilItIsFilled) {
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 17)).ok());
  ASSERT_TRUE(a.Remove({BlockHash(103)}).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 17)), ElementsAre(Holding{kA, 3}));
  ASSERT_TRUE(a.Store(BlockHash(102), {BlockHash(103)}).ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 17)), ElementsAre(Holding{kA, 17}));
  EXPECT_EQ(index.runs(), 1u) << "what was split is one again";
}

TEST(PrefixIndexCases, Case06ADuplicateStoreChangesNoSize) {
  PrefixIndex index;
  IndexFeed a(index, 3), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 3)).ok());
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 3)).ok());
  EXPECT_EQ(index.distinct_blocks(), 3u);
  EXPECT_EQ(index.memberships(), 3u);
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 3)).ok());
  EXPECT_EQ(index.distinct_blocks(), 3u);
  EXPECT_EQ(index.memberships(), 6u);
}

TEST(PrefixIndexCases, Case07AnUnknownParentIsAnErrorAndChangesNothing) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 1)).ok());
  // Known at another worker does not count.
  EXPECT_EQ(a.Store(BlockHash(100), HashChain(101, 2)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(index.memberships(), 1u);
  EXPECT_EQ(index.ExpectedSequence(kA), 1u);
}

TEST(PrefixIndexCases, Case08RemovingTheUnknownIsANoOp) {
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 2)).ok());
  EXPECT_TRUE(a.Remove({BlockHash(555)}).ok());
  index.RemoveWorker(77);
  index.ClearWorker(77);
  EXPECT_EQ(index.memberships(), 2u);
  EXPECT_EQ(index.Apply(77, {1, CacheCleared{}}).code(),
            absl::StatusCode::kNotFound);
}

TEST(PrefixIndexCases, Case09PartialTailsAndShortPromptsMatchNothing) {
  RealHashes hashes;
  std::vector<TokenId> tokens(kBlockTokens + 5, 3);
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(hashes.Chain(tokens)).ok());
  EXPECT_THAT(MatchOf(index, hashes.Chain(tokens)),
              ElementsAre(Holding{kA, 1}));
  tokens.resize(kBlockTokens - 1);
  EXPECT_THAT(MatchOf(index, hashes.Chain(tokens)), IsEmpty());
}

TEST(PrefixIndexCases, Case10ClearingOneWorkerLeavesTheOthers) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 4)).ok());
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 3)).ok());
  ASSERT_TRUE(a.Clear().ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 4)), ElementsAre(Holding{kB, 3}));
  EXPECT_EQ(index.distinct_blocks(), 3u);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 1)).ok());
  index.ClearWorker(kB);
  EXPECT_THAT(MatchOf(index, HashChain(100, 4)), ElementsAre(Holding{kA, 1}));
}

TEST(PrefixIndexCases, Case11ADeadWorkersBlocksDoNotReturnWithIt) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 4)).ok());
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 2)).ok());
  index.RemoveWorker(kA);
  EXPECT_THAT(MatchOf(index, HashChain(100, 4)), ElementsAre(Holding{kB, 2}));
  IndexFeed again(index);
  EXPECT_THAT(MatchOf(index, HashChain(100, 4)), ElementsAre(Holding{kB, 2}));
  ASSERT_TRUE(again.StoreRoot(HashChain(100, 1)).ok());
  EXPECT_EQ(index.memberships(), 3u);
  EXPECT_EQ(index.Match(HashChain(100, 4)).deepest(), 2);
}

TEST(PrefixIndexCases, Case12ManyOwnersAreAllReported) {
  PrefixIndex index;
  std::vector<Holding> expected;
  for (WorkerSlot slot = 0; slot < 300; ++slot) {
    IndexFeed feed(index);
    const int blocks = 1 + static_cast<int>(slot) % 20;
    ASSERT_TRUE(feed.StoreRoot(HashChain(100, blocks)).ok());
    expected.push_back({slot, blocks});
  }
  EXPECT_EQ(MatchOf(index, HashChain(100, 20)), expected);
  EXPECT_EQ(index.runs(), 20u);
}

TEST(PrefixIndexCases, Case13AdaptersSaltsAndTenantsAreApart) {
  RealHashes hashes;
  const std::vector<TokenId> tokens = Tokens(2);
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(hashes.Chain(tokens)).ok());
  for (auto field : {&BlockHasher::Scope::adapter, &BlockHasher::Scope::tenant,
                     &BlockHasher::Scope::cache_salt}) {
    RealHashes other;
    (other.scope().*field).push_back('x');
    EXPECT_THAT(MatchOf(index, other.Chain(tokens)), IsEmpty());
  }
}

// A worker whose cache has no end: whatever is stored, memory is bounded, and
// what was stored last is known.
TEST(PrefixIndexCases, Case14ManyPrefixesTakeBoundedMemory) {
  PrefixIndex::Options options;
  options.max_bytes = 4 << 20;
  PrefixIndex index(options);
  IndexFeed a(index, 1 << 30);
  uint64_t next = 1;
  size_t fewest = SIZE_MAX;
  for (int prefix = 0; prefix < 60'000; ++prefix) {
    const int blocks = 1 + prefix % 16;
    ASSERT_TRUE(a.StoreRoot(HashChain(next, blocks)).ok());
    ASSERT_LE(index.bytes(), options.max_bytes);
    ASSERT_EQ(index.Match(HashChain(next, blocks)).BlocksOf(kA), blocks);
    next += 1000;
    if (prefix > 30'000) fewest = std::min(fewest, index.distinct_blocks());
  }
  EXPECT_GT(fewest, options.max_bytes / 60) << "bytes a block";
  index.CheckStructure();
}

TEST(PrefixIndexCases, Case15ADumpStoredAgainMatchesTheSame) {
  PrefixIndex index;
  IndexFeed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 40)).ok());
  ASSERT_TRUE(a.Store(BlockHash(110), HashChain(500, 10)).ok());
  ASSERT_TRUE(b.StoreRoot(HashChain(100, 7)).ok());
  ASSERT_TRUE(a.Remove({BlockHash(130)}).ok());
  PrefixIndex other;
  for (WorkerSlot slot : {kA, kB}) {
    ASSERT_EQ(other.AddWorker(1000), slot);
    ASSERT_TRUE(other.Replace(slot, index.Dump(slot)).ok());
    EXPECT_EQ(other.ExpectedSequence(slot), index.ExpectedSequence(slot));
  }
  EXPECT_EQ(other.memberships(), index.memberships());
  std::vector<BlockHash> branch = HashChain(100, 11);
  for (BlockHash hash : HashChain(500, 10)) branch.push_back(hash);
  EXPECT_THAT(MatchOf(other, branch),
              ElementsAre(Holding{kA, 21}, Holding{kB, 7}));
  EXPECT_THAT(MatchOf(other, HashChain(100, 40)),
              ElementsAre(Holding{kA, 30}, Holding{kB, 7}));
}

TEST(PrefixIndexCases, Case16AGapAsksForReplayAndASnapshotEndsIt) {
  PrefixIndex index;
  IndexFeed a(index);
  ASSERT_TRUE(a.StoreRoot(HashChain(100, 2)).ok());
  a.Lose();
  EXPECT_EQ(a.Store(BlockHash(102), HashChain(103, 2)).code(),
            absl::StatusCode::kOutOfRange);
  ASSERT_EQ(index.ExpectedSequence(kA), 2u);
  // Replayed from there, what was applied already among it.
  EXPECT_TRUE(
      index.Apply(kA, {1, BlocksStored{BlockHash(), HashChain(100, 2)}}).ok());
  EXPECT_TRUE(
      index.Apply(kA, {2, BlocksStored{BlockHash(101), {BlockHash(102)}}})
          .ok());
  EXPECT_TRUE(
      index.Apply(kA, {3, BlocksStored{BlockHash(102), HashChain(103, 2)}})
          .ok());
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)), ElementsAre(Holding{kA, 5}));
  // Too old to be replayed.
  ASSERT_TRUE(index.Replace(kA, {90, {{BlockHash(), HashChain(100, 8)}}}).ok());
  EXPECT_EQ(index.ExpectedSequence(kA), 91u);
  EXPECT_THAT(MatchOf(index, HashChain(100, 9)), ElementsAre(Holding{kA, 8}));
}

// The core runs on one thread: what comes at once comes in some order.
TEST(PrefixIndexCases, Case17AnyOrderOfEventsAgreesWithTheOracle) {
  PrefixExercise exercise(17);
  for (int i = 0; i < 1500; ++i) exercise.Next();
}

TEST(PrefixIndexCases, Case18AtTheLimitIsWithinIt) {
  PrefixIndex index;
  IndexFeed a(index, 4);
  EXPECT_TRUE(a.StoreRoot(HashChain(100, 4)).ok());
  EXPECT_EQ(a.Store(BlockHash(103), HashChain(104, 1)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(index.Replace(kA, {9, {{BlockHash(), HashChain(100, 4)}}}).ok());
  EXPECT_EQ(index.Replace(kA, {10, {{BlockHash(), HashChain(100, 5)}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index.memberships(), 4u);
}

}  // namespace
}  // namespace penstock
