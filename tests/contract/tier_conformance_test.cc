// What every KvTier promises, whatever keeps the pages.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"
#include "tests/contract/tier_bench.h"
#include "tests/contract/tier_makers.h"

namespace penstock {
namespace {

class TierConformanceTest : public testing::TestWithParam<TierMaker> {
 protected:
  void SetUp() override { Make(1 << 20); }

  void Make(uint64_t max_bytes) {
    tier_.reset();
    tier_ = GetParam().make(bench_, folder_.path(), max_bytes);
    if (tier_ == nullptr) GTEST_SKIP() << "not permitted on this machine";
  }

  TemporaryFolder folder_;
  TierBench bench_;
  std::unique_ptr<KvTier> tier_;
};

TEST_P(TierConformanceTest, AStoredPageComesBackAsItWas) {
  const auto keys = bench_.Chain(1, 8);
  bench_.StoreAll(*tier_, keys);
  for (const TierKey& key : keys) {
    EXPECT_TRUE(bench_.Fetch(*tier_, key).ok());
  }
  // Once more, in the other order.
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    EXPECT_TRUE(bench_.Fetch(*tier_, *key).ok());
  }
}

TEST_P(TierConformanceTest, LookupCountsLeadingBlocks) {
  auto keys = bench_.Chain(1, 6);
  EXPECT_EQ(bench_.Lookup(*tier_, keys), 0);
  for (int i : {0, 1, 2, 4}) ASSERT_TRUE(bench_.Store(*tier_, keys[i]).ok());
  EXPECT_EQ(bench_.Lookup(*tier_, keys), 3);
  EXPECT_EQ(bench_.Lookup(*tier_, {keys[0]}), 1);
  EXPECT_EQ(bench_.Lookup(*tier_, {keys[3], keys[4]}), 0);
  EXPECT_EQ(bench_.Lookup(*tier_, bench_.Chain(2, 3)), 0);
  ASSERT_TRUE(bench_.Store(*tier_, keys[3]).ok());
  EXPECT_EQ(bench_.Lookup(*tier_, keys), 5);
  // From further on, as when the pool has the first ones.
  EXPECT_EQ(bench_.Lookup(*tier_, {keys.begin() + 2, keys.end()}), 3);
  EXPECT_GT(tier_->Lookup(TierBench::Hashes(keys)).each, absl::ZeroDuration());
}

TEST_P(TierConformanceTest, WhatIsNotThereIsNotFound) {
  const auto keys = bench_.Chain(1, 2);
  ASSERT_TRUE(bench_.Store(*tier_, keys[0]).ok());
  EXPECT_TRUE(absl::IsNotFound(bench_.Fetch(*tier_, keys[1])));
  EXPECT_TRUE(bench_.Fetch(*tier_, keys[0]).ok());
}

TEST_P(TierConformanceTest, APageIsTakenOnce) {
  const auto keys = bench_.Chain(1, 1);
  ASSERT_TRUE(bench_.Store(*tier_, keys[0]).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(bench_.Store(*tier_, keys[0])));
  EXPECT_TRUE(bench_.Fetch(*tier_, keys[0]).ok());
}

TEST_P(TierConformanceTest, WhatIsComputedAtOnceIsNotWorthIt) {
  const auto keys = bench_.Chain(1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      bench_.Store(*tier_, keys[0], absl::ZeroDuration())));
}

// Another block under the hash asked for: as if two hashes were equal.
TEST_P(TierConformanceTest, AnotherBlockIsDataLossAndForgotten) {
  const auto keys = bench_.Chain(1, 2);
  bench_.StoreAll(*tier_, keys);
  TierKey other_tokens = keys[0];
  other_tokens.tokens[3] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(bench_.Fetch(*tier_, other_tokens)));
  TierKey other_parent = keys[1];
  other_parent.parent = BlockHash(4711);
  EXPECT_TRUE(absl::IsDataLoss(bench_.Fetch(*tier_, other_parent)));
  if (GetParam().forgets) {
    EXPECT_EQ(bench_.Lookup(*tier_, keys), 0);
  }
}

TEST_P(TierConformanceTest, EachPageOfAFetchEndsOnce) {
  const auto keys = bench_.Chain(1, 12);
  bench_.StoreAll(*tier_, {keys.begin(), keys.begin() + 9});
  std::vector<TierRead> reads;
  for (int i = 0; i < 12; ++i) reads.push_back({keys[i], {i, 1}});
  const TierTicket ticket = tier_->Fetch(reads);
  std::set<int> ended;
  for (int i = 0; i < 12; ++i) {
    const TierCompletion done = bench_.Await(*tier_);
    EXPECT_EQ(done.ticket, ticket);
    EXPECT_TRUE(ended.insert(done.page).second);
    EXPECT_EQ(done.status.ok(), done.page < 9) << done.status;
    if (done.status.ok()) {
      EXPECT_TRUE(bench_.Holds(done.page, keys[done.page]));
    }
  }
  EXPECT_FALSE(tier_->Poll().has_value());
}

TEST_P(TierConformanceTest, ACancelledFetchStillEndsPageByPage) {
  const auto keys = bench_.Chain(1, 20);
  bench_.StoreAll(*tier_, keys);
  std::vector<TierRead> reads;
  for (int i = 0; i < 20; ++i) reads.push_back({keys[i], {i, 1}});
  const TierTicket ticket = tier_->Fetch(reads);
  tier_->Cancel(ticket);
  std::set<int> ended;
  for (int i = 0; i < 20; ++i) {
    const TierCompletion done = bench_.Await(*tier_);
    EXPECT_TRUE(ended.insert(done.page).second);
    EXPECT_TRUE(done.status.ok() || absl::IsCancelled(done.status))
        << done.status;
    if (done.status.ok()) {
      EXPECT_TRUE(bench_.Holds(done.page, keys[done.page]));
    }
  }
  tier_->Cancel(ticket);
  EXPECT_FALSE(tier_->Poll().has_value());
  EXPECT_TRUE(bench_.Fetch(*tier_, keys[19]).ok());
}

// Its blocks are the engine's again at once: a sanitizer, or the assertion,
// sees who touches them.
TEST_P(TierConformanceTest, ATierThatGoesTouchesNothingMore) {
  const auto keys = bench_.Chain(1, 20);
  bench_.StoreAll(*tier_, {keys.begin(), keys.begin() + 10});
  std::vector<TierRead> reads;
  for (int i = 0; i < 10; ++i) reads.push_back({keys[i], {i, 1}});
  tier_->Fetch(reads);
  for (int i = 10; i < 20; ++i) {
    bench_.Fill(i, keys[i]);
    tier_->Store(keys[i], {i, 1}, absl::Seconds(1));
  }
  tier_.reset();
  for (int i = 0; i < 20; ++i) bench_.Poison(i);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(std::count(bench_.Block(i).begin(), bench_.Block(i).end(), 0xEE),
              static_cast<int>(bench_.page_bytes()));
  }
}

// More than it holds: it keeps something, serves nothing wrong, and ends.
TEST_P(TierConformanceTest, ServesOnlyRightPagesWhenItIsFull) {
  Make(64 * 1024);
  SeededRandom random(3);
  std::vector<std::vector<TierKey>> chains;
  for (uint64_t i = 0; i < 30; ++i) chains.push_back(bench_.Chain(i, 8));
  int hits = 0, misses = 0;
  for (int i = 0; i < 600; ++i) {
    const auto& chain = chains[random.Below(chains.size())];
    const TierKey& key = chain[random.Below(chain.size())];
    if (random.Below(3) > 0) {
      const absl::Status stored = bench_.Store(*tier_, key);
      EXPECT_TRUE(stored.ok() || absl::IsAlreadyExists(stored) ||
                  absl::IsFailedPrecondition(stored))
          << stored;
      continue;
    }
    const absl::Status fetched = bench_.Fetch(*tier_, key);
    EXPECT_TRUE(fetched.ok() || absl::IsNotFound(fetched)) << fetched;
    ++(fetched.ok() ? hits : misses);
  }
  EXPECT_GT(hits, 10);
  EXPECT_GT(misses, 10);
}

// Many stores and fetches under way at a time, over blocks of their own.
TEST_P(TierConformanceTest, ManyOperationsAtOnce) {
  const auto keys = bench_.Chain(1, 60);
  SeededRandom random(9);
  std::map<TierTicket, std::pair<BlockIndex, TierKey>> fetching;
  std::map<TierTicket, BlockIndex> storing;
  std::set<BlockIndex> idle;
  for (BlockIndex i = 0; i < 24; ++i) idle.insert(i);
  size_t next = 0;
  int served = 0;
  auto end_one = [&] {
    const TierCompletion done = bench_.Await(*tier_);
    if (auto it = storing.find(done.ticket); it != storing.end()) {
      EXPECT_TRUE(done.status.ok()) << done.status;
      idle.insert(it->second);
      storing.erase(it);
      return;
    }
    auto it = fetching.find(done.ticket);
    ASSERT_TRUE(it != fetching.end());
    const auto& [block, key] = it->second;
    if (done.status.ok()) {
      EXPECT_TRUE(bench_.Holds(block, key));
      ++served;
    }
    idle.insert(block);
    fetching.erase(it);
  };
  while (next < keys.size()) {
    if (idle.empty()) end_one();
    const BlockIndex block = *idle.begin();
    if (random.Below(2) == 0) {
      bench_.Fill(block, keys[next]);
      const TierStored stored =
          tier_->Store(keys[next], {block, 1}, absl::Seconds(1));
      if (stored.verdict == TierStoreVerdict::kBusy) {
        end_one();
        continue;
      }
      ASSERT_EQ(stored.verdict, TierStoreVerdict::kTaken);
      storing[stored.ticket] = block;
      ++next;
    } else if (next > 0) {
      const TierKey& key = keys[random.Below(next)];
      bench_.Poison(block);
      fetching[tier_->Fetch({{key, {block, 1}}})] = {block, key};
    } else {
      continue;
    }
    idle.erase(block);
  }
  while (!storing.empty() || !fetching.empty()) end_one();
  EXPECT_GT(served, 0);
  EXPECT_EQ(bench_.Lookup(*tier_, keys), 60);
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierConformanceTest,
                         testing::ValuesIn(TierMakers()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
