#include "router/core/prefix_index.h"

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "common/env/random.h"
#include "common/model/block_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Holding = PrefixMatch::Holding;

// What the first two workers of an index are given.
constexpr WorkerSlot kA = 0, kB = 1;

std::vector<Holding> Match(const PrefixIndex& index,
                           const std::vector<BlockHash>& chain) {
  return index.Match(chain).Holdings();
}

// Hashes by hand: 100 + n is block n of a chain.
std::vector<BlockHash> Chain(uint64_t first, int count) {
  std::vector<BlockHash> chain;
  for (int i = 0; i < count; ++i) chain.push_back(BlockHash(first + i));
  return chain;
}

// One worker's stream of events.
class Feed {
 public:
  explicit Feed(PrefixIndex& index, size_t max_blocks = 1000)
      : index_(index), slot_(index.AddWorker(max_blocks)) {}
  absl::Status Store(BlockHash parent, std::vector<BlockHash> hashes) {
    return index_.Apply(slot_, {++sequence_, BlocksStored{parent, hashes}});
  }
  absl::Status StoreRoot(std::vector<BlockHash> hashes) {
    return Store(BlockHash(), std::move(hashes));
  }
  absl::Status Remove(std::vector<BlockHash> hashes) {
    return index_.Apply(slot_, {++sequence_, BlocksRemoved{hashes}});
  }
  absl::Status Clear() {
    return index_.Apply(slot_, {++sequence_, CacheCleared{}});
  }

 private:
  PrefixIndex& index_;
  WorkerSlot slot_;
  uint64_t sequence_ = 0;
};

TEST(PrefixIndexTest, MatchesTheStoredPartOfAQuery) {
  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 3)).ok());
  EXPECT_THAT(Match(index, Chain(100, 4)), ElementsAre(Holding{kA, 3}));
}

TEST(PrefixIndexTest, ReportsEachOwnersDepth) {
  PrefixIndex index;
  Feed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 5)).ok());
  ASSERT_TRUE(b.StoreRoot(Chain(100, 2)).ok());
  EXPECT_THAT(Match(index, Chain(100, 8)),
              ElementsAre(Holding{kA, 5}, Holding{kB, 2}));
}

// Equal tokens behind different parents, and under different adapters, salts
// and tenants, have different hashes: real hashes, so that this is shown.
TEST(PrefixIndexTest, SameContentElsewhereDoesNotMatch) {
  HashSecret secret("key");
  BlockHasher hasher(secret);
  std::vector<TokenId> tokens(2 * kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), 1);
  BlockHasher::Scope scope;
  scope.model = ContentId(9);
  std::vector<BlockHash> stored = hasher.Chain(hasher.Root(scope), tokens);

  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(stored).ok());
  EXPECT_THAT(Match(index, stored), ElementsAre(Holding{kA, 2}));

  std::vector<BlockHash> second_block_first = hasher.Chain(
      hasher.Root(scope),
      absl::MakeConstSpan(tokens).subspan(kBlockTokens, kBlockTokens));
  EXPECT_THAT(Match(index, second_block_first), IsEmpty());
  for (auto field : {&BlockHasher::Scope::adapter, &BlockHasher::Scope::tenant,
                     &BlockHasher::Scope::cache_salt}) {
    BlockHasher::Scope other = scope;
    (other.*field).push_back('x');
    EXPECT_THAT(Match(index, hasher.Chain(hasher.Root(other), tokens)),
                IsEmpty());
  }
}

TEST(PrefixIndexTest, DivergedQueryDoesNotRejoin) {
  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 10)).ok());
  std::vector<BlockHash> query = Chain(100, 10);
  for (int i = 1; i <= 7; ++i) query[i] = BlockHash(900 + i);
  EXPECT_THAT(Match(index, query), ElementsAre(Holding{kA, 1}));
}

TEST(PrefixIndexTest, AHoleEndsTheMatchUntilItIsFilled) {
  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 17)).ok());
  ASSERT_TRUE(a.Remove({BlockHash(103)}).ok());
  EXPECT_THAT(Match(index, Chain(100, 17)), ElementsAre(Holding{kA, 3}));
  ASSERT_TRUE(a.Store(BlockHash(102), {BlockHash(103)}).ok());
  EXPECT_THAT(Match(index, Chain(100, 17)), ElementsAre(Holding{kA, 17}));
}

TEST(PrefixIndexTest, DuplicateStoreChangesNoSize) {
  PrefixIndex index;
  Feed a(index, 3), b(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 3)).ok());
  ASSERT_TRUE(a.StoreRoot(Chain(100, 3)).ok());
  EXPECT_EQ(index.distinct_blocks(), 3u);
  EXPECT_EQ(index.memberships(), 3u);
  ASSERT_TRUE(b.StoreRoot(Chain(100, 3)).ok());
  EXPECT_EQ(index.distinct_blocks(), 3u);
  EXPECT_EQ(index.memberships(), 6u);
}

TEST(PrefixIndexTest, UnknownParentIsAnErrorAndChangesNothing) {
  PrefixIndex index;
  Feed a(index), b(index);
  ASSERT_TRUE(b.StoreRoot(Chain(100, 1)).ok());
  // Known at another worker does not count.
  absl::Status status = a.Store(BlockHash(100), Chain(101, 2));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(index.memberships(), 1u);
  EXPECT_EQ(index.ExpectedSequence(kA), 1u);
}

TEST(PrefixIndexTest, RemovingTheUnknownIsANoOp) {
  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 2)).ok());
  EXPECT_TRUE(a.Remove({BlockHash(555)}).ok());
  index.RemoveWorker(77);
  index.ClearWorker(77);
  EXPECT_EQ(index.memberships(), 2u);
  EXPECT_EQ(index.Apply(77, {1, CacheCleared{}}).code(),
            absl::StatusCode::kNotFound);
}

TEST(PrefixIndexTest, PartialTailAndShortPromptsMatchNothing) {
  HashSecret secret("key");
  BlockHasher hasher(secret);
  std::vector<TokenId> tokens(kBlockTokens + 5, 3);
  BlockHash root = hasher.Root({});
  PrefixIndex index;
  Feed a(index);
  ASSERT_TRUE(a.StoreRoot(hasher.Chain(root, tokens)).ok());
  EXPECT_THAT(Match(index, hasher.Chain(root, tokens)),
              ElementsAre(Holding{kA, 1}));
  tokens.resize(kBlockTokens - 1);
  EXPECT_THAT(Match(index, hasher.Chain(root, tokens)), IsEmpty());
}

TEST(PrefixIndexTest, ClearingOneWorkerLeavesTheOthers) {
  PrefixIndex index;
  Feed a(index), b(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 4)).ok());
  ASSERT_TRUE(b.StoreRoot(Chain(100, 3)).ok());
  ASSERT_TRUE(a.Clear().ok());
  EXPECT_THAT(Match(index, Chain(100, 4)), ElementsAre(Holding{kB, 3}));
  EXPECT_EQ(index.distinct_blocks(), 3u);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 1)).ok());
  index.ClearWorker(kB);
  EXPECT_THAT(Match(index, Chain(100, 4)), ElementsAre(Holding{kA, 1}));
}

TEST(PrefixIndexTest, ADeadWorkerLeavesNothing) {
  PrefixIndex index;
  Feed a(index, 5000), b(index);
  ASSERT_TRUE(a.StoreRoot(Chain(100, 5000)).ok());
  index.RemoveWorker(kA);
  EXPECT_GT(index.distinct_blocks(), 0u) << "not all at once";
  EXPECT_EQ(index.AddWorker(10), 2u) << "not the slot that is named yet";
  index.RemoveWorker(2);
  EXPECT_THAT(Match(index, Chain(100, 5000)), IsEmpty());
  EXPECT_EQ(index.memberships(), 0u);
  EXPECT_EQ(index.workers(), 1u);
  // What another stores while the memory comes back is the other's alone.
  ASSERT_TRUE(b.StoreRoot(Chain(100, 3)).ok());
  EXPECT_THAT(Match(index, Chain(100, 5000)), ElementsAre(Holding{kB, 3}));
  EXPECT_EQ(index.memberships(), 3u);
  int events = 0;
  for (; index.distinct_blocks() > 3 && events < 100; ++events) {
    ASSERT_TRUE(b.Remove({BlockHash(5)}).ok());
  }
  EXPECT_EQ(index.distinct_blocks(), 3u) << "after " << events << " events";
  EXPECT_EQ(index.AddWorker(10), kA);
  index.RemoveWorker(kA);
  EXPECT_THAT(Match(index, Chain(100, 5000)), ElementsAre(Holding{kB, 3}));
}

TEST(PrefixIndexTest, HostileSizesAndHashesAreRefused) {
  PrefixIndex index;
  Feed a(index, 4);
  EXPECT_EQ(a.StoreRoot(Chain(100, 5)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(
      index.Apply(kA, {1, BlocksStored{BlockHash(), {BlockHash()}}}).code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(index.Replace(kA, {9, {{BlockHash(), Chain(100, 5)}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index.Replace(kA, {9, {{BlockHash(), {BlockHash()}}}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(index.memberships(), 0u);
  EXPECT_EQ(index.ExpectedSequence(kA), 1u);
}

// Against the plainest oracle there is: a set of hashes for each worker.
TEST(PrefixIndexTest, AgreesWithASetPerWorker) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    PrefixIndex index;
    std::map<WorkerSlot, std::set<BlockHash>> oracle;
    std::map<WorkerSlot, uint64_t> sequences;
    // A tree of prefixes: node n's parent is n / 3, hash n; 0 is the root.
    auto path = [](uint64_t node) {
      std::vector<BlockHash> chain;
      for (; node != 0; node /= 3) chain.insert(chain.begin(), BlockHash(node));
      return chain;
    };
    for (int step = 0; step < 2000; ++step) {
      uint64_t choice = random.Below(20);
      if (choice == 0 && oracle.size() < 6) {
        const WorkerSlot slot = index.AddWorker(1000);
        ASSERT_TRUE(oracle.try_emplace(slot).second) << "slot " << slot;
        sequences[slot] = 0;
        continue;
      }
      if (oracle.empty()) continue;
      auto owner = oracle.begin();
      std::advance(owner, random.Below(oracle.size()));
      auto& [slot, blocks] = *owner;
      uint64_t node = 1 + random.Below(120);
      if (choice == 1) {
        index.RemoveWorker(slot);
        oracle.erase(owner);
      } else if (choice == 2) {
        ASSERT_TRUE(
            index.Apply(slot, {++sequences[slot], CacheCleared{}}).ok());
        blocks.clear();
      } else if (choice < 7) {
        ASSERT_TRUE(index
                        .Apply(slot, {++sequences[slot],
                                      BlocksRemoved{{BlockHash(node)}}})
                        .ok());
        blocks.erase(BlockHash(node));
      } else {
        BlockHash parent(node / 3);
        bool known = !parent || blocks.contains(parent);
        absl::Status status = index.Apply(
            slot,
            {sequences[slot] + 1, BlocksStored{parent, {BlockHash(node)}}});
        ASSERT_EQ(status.ok(), known);
        if (!known) continue;
        ++sequences[slot];
        blocks.insert(BlockHash(node));
      }
      std::vector<BlockHash> query = path(1 + random.Below(400));
      std::vector<Holding> expected;
      size_t memberships = 0;
      for (const auto& [worker, held] : oracle) {
        memberships += held.size();
        int depth = 0;
        while (depth < static_cast<int>(query.size()) &&
               held.contains(query[depth])) {
          ++depth;
        }
        if (depth > 0) expected.push_back({worker, depth});
      }
      ASSERT_EQ(Match(index, query), expected) << "seed " << seed;
      ASSERT_EQ(index.memberships(), memberships);
    }
  }
}

}  // namespace
}  // namespace penstock
