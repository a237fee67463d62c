#include "kvstore/core/tier_policy.h"

#include <algorithm>
#include <map>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

BlockHash H(uint64_t value) { return BlockHash(value); }

constexpr TierPolicy::Cost kPlain{1.0, 0.0, 1};

TEST(TierPolicyTest, EqualCostsGoLeastRecentlyUsedFirst) {
  TierPolicy policy;
  for (uint64_t i = 1; i <= 3; ++i) policy.Add(H(i), BlockHash(), kPlain);
  EXPECT_EQ(policy.Evict(), H(1));
  EXPECT_EQ(policy.Evict(), H(2));
  EXPECT_EQ(policy.Evict(), H(3));
  EXPECT_EQ(policy.Evict(), std::nullopt);
}

TEST(TierPolicyTest, PagesGoDeepestFirstWhateverTheyCost) {
  TierPolicy policy;
  // As the pool evicts them: the last of the chain comes first.
  policy.Add(H(3), H(2), {9.0, 0.0, 1});
  policy.Add(H(2), H(1), {5.0, 0.0, 1});
  policy.Add(H(1), H(99), {1.0, 0.0, 1});
  EXPECT_EQ(policy.Evict(), H(3));
  EXPECT_EQ(policy.Evict(), H(2));
  EXPECT_EQ(policy.Evict(), H(1));
}

// The worked values of the formula: clock + uses x saved / bytes.
TEST(TierPolicyTest, PriorityIsClockPlusUsesTimesWorthOfAByte) {
  TierPolicy policy;
  policy.Add(H(1), BlockHash(), {3.0, 1.0, 4});  // 0.5 a use
  EXPECT_DOUBLE_EQ(policy.Priority(H(1)), 0.5);
  policy.Use(H(1));
  EXPECT_DOUBLE_EQ(policy.Priority(H(1)), 1.0);
  policy.Add(H(2), BlockHash(), {9.0, 1.0, 4});  // 2 a use
  policy.Add(H(3), BlockHash(), {1.0, 0.0, 4});  // 0.25 a use
  EXPECT_EQ(policy.Evict(), H(3));               // the clock is 0.25
  EXPECT_EQ(policy.Evict(), H(1));               // 1.0
  policy.Add(H(4), BlockHash(), {2.0, 0.0, 2});  // 1.0 + 1.0
  EXPECT_DOUBLE_EQ(policy.Priority(H(4)), 2.0);
  // Equal to page 2's, which was used earlier.
  EXPECT_EQ(policy.Victim(), H(2));
}

TEST(TierPolicyTest, WhatWasMuchUsedLongAgoGivesWay) {
  TierPolicy policy;
  policy.Add(H(1), BlockHash(), kPlain);
  for (int i = 0; i < 9; ++i) policy.Use(H(1));  // 10
  uint64_t next = 100;
  policy.Add(H(++next), BlockHash(), kPlain);
  // One in, one out: each newcomer is worth one use more than the last.
  int survived = 0;
  while (policy.Holds(H(1)) && survived < 100) {
    policy.Evict();
    policy.Add(H(++next), BlockHash(), kPlain);
    ++survived;
  }
  EXPECT_EQ(survived, 10);
}

// Against the definition, worked out by looking at every page each time.
TEST(TierPolicyTest, AgreesWithANaiveOracle) {
  struct Page {
    BlockHash parent;
    double worth = 0, priority = 0;
    int uses = 0;
    uint64_t last = 0;
  };
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SeededRandom random(seed);
    TierPolicy policy;
    std::map<BlockHash, Page> pages;
    double clock = 0;
    uint64_t tick = 0;
    auto touch = [&](Page& page) {
      page.priority = clock + ++page.uses * page.worth;
      page.last = ++tick;
    };
    auto victim = [&]() -> std::optional<BlockHash> {
      std::optional<BlockHash> best;
      for (const auto& [hash, page] : pages) {
        const bool leaf = std::none_of(
            pages.begin(), pages.end(),
            [&](const auto& other) { return other.second.parent == hash; });
        if (!leaf) continue;
        if (!best || std::pair(page.priority, page.last) <
                         std::pair(pages[*best].priority, pages[*best].last)) {
          best = hash;
        }
      }
      return best;
    };
    for (int i = 0; i < 400; ++i) {
      // Parents are smaller than their children: no cycles.
      const uint64_t id = 1 + random.Below(20);
      switch (random.Below(4)) {
        case 0: {
          const TierPolicy::Cost cost{1.0 + random.Below(4), 0.5, 2};
          const BlockHash parent = H(id / 2);
          policy.Add(H(id), parent, cost);
          if (!pages.contains(H(id))) {
            pages[H(id)] = {parent, (cost.recompute_seconds - 0.5) / 2};
          }
          touch(pages[H(id)]);
          break;
        }
        case 1:
          policy.Use(H(id));
          if (pages.contains(H(id))) touch(pages[H(id)]);
          break;
        case 2:
          policy.Remove(H(id));
          pages.erase(H(id));
          break;
        default: {
          const auto expected = victim();
          ASSERT_EQ(policy.Evict(), expected) << "seed " << seed;
          if (expected) {
            clock = std::max(clock, pages[*expected].priority);
            pages.erase(*expected);
          }
        }
      }
      ASSERT_EQ(policy.size(), pages.size());
      ASSERT_EQ(policy.Victim(), victim()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace penstock
