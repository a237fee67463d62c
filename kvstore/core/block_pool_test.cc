#include "kvstore/core/block_pool.h"

#include <map>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(BlockPoolTest, AllocationIsAllOrNothing) {
  BlockPool pool(4);
  auto three = pool.TryAllocate(3);
  ASSERT_TRUE(three.has_value());
  EXPECT_FALSE(pool.TryAllocate(2).has_value());
  EXPECT_EQ(pool.counts().active, 3);
  EXPECT_EQ(pool.counts().free, 1);
  three.reset();
  EXPECT_EQ(pool.counts().free, 4);
  pool.CheckConservation();
}

TEST(BlockPoolTest, FreeingEndsTheGeneration) {
  BlockPool pool(1);
  BlockRef first = (*pool.TryAllocate(1))[0].ref();
  EXPECT_FALSE(pool.IsLive(first));
  auto again = pool.TryAllocate(1);
  EXPECT_EQ((*again)[0].index(), first.index);
  EXPECT_NE((*again)[0].ref().generation, first.generation);
  EXPECT_FALSE(pool.TryHold(first));
}

TEST(BlockPoolTest, StatesFollowTheirPrecedence) {
  BlockPool pool(1);
  auto holds = pool.TryAllocate(1);
  BlockRef ref = (*holds)[0].ref();
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kActive);
  TransferPin pin = pool.Pin(ref);
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kInTransfer);
  pool.Quarantine(ref);
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kQuarantined);
  holds.reset();
  pin.Reset();
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kQuarantined);
  EXPECT_FALSE(pool.TryAllocate(1).has_value());
  pool.Reclaim(ref);
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kFree);
}

TEST(BlockPoolTest, CachedBlocksSurviveTheirLastReference) {
  BlockPool pool(1);
  auto holds = pool.TryAllocate(1);
  BlockRef ref = (*holds)[0].ref();
  pool.SetCached(ref, true);
  holds.reset();
  EXPECT_EQ(pool.StateOf(ref.index), BlockState::kCached);
  EXPECT_TRUE(pool.TryHold(ref));
  pool.SetCached(ref, false);
  EXPECT_EQ(pool.counts().free, 1);
}

TEST(BlockPoolTest, PinOutlivesTheHold) {
  BlockPool pool(1);
  auto holds = pool.TryAllocate(1);
  TransferPin pin = pool.Pin((*holds)[0].ref());
  holds.reset();
  EXPECT_EQ(pool.counts().in_transfer, 1);
  pin.Reset();
  EXPECT_EQ(pool.counts().free, 1);
}

// Random operations against a naive model of the five-state rule.
TEST(BlockPoolTest, ConservesBlocksUnderRandomUse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    BlockPool pool(12);
    std::vector<BlockHold> holds;
    std::vector<TransferPin> pins;
    std::map<BlockIndex, int> refs;
    for (int i = 0; i < 500; ++i) {
      switch (random.Below(5)) {
        case 0:
          if (auto got = pool.TryAllocate(random.Below(4))) {
            for (BlockHold& hold : *got) {
              EXPECT_EQ(refs[hold.index()], 0);
              ++refs[hold.index()];
              holds.push_back(std::move(hold));
            }
          }
          break;
        case 1:
          if (!holds.empty()) {
            holds.push_back(holds[random.Below(holds.size())].Share());
            ++refs[holds.back().index()];
          }
          break;
        case 2:
          if (!holds.empty()) {
            size_t at = random.Below(holds.size());
            --refs[holds[at].index()];
            std::swap(holds[at], holds.back());
            holds.pop_back();
          }
          break;
        case 3:
          if (!holds.empty() && pins.size() < 4) {
            BlockRef ref = holds[random.Below(holds.size())].ref();
            ++refs[ref.index];
            pins.push_back(pool.Pin(ref));
          }
          break;
        default:
          if (!pins.empty()) {
            --refs[pins.back().ref().index];
            pins.pop_back();
          }
      }
      int used = 0;
      for (const auto& [index, count] : refs) used += count > 0;
      EXPECT_EQ(pool.counts().active + pool.counts().in_transfer, used);
      EXPECT_EQ(pool.counts().free, 12 - used);
      pool.CheckConservation();
    }
  }
}

TEST(BlockPoolDeathTest, StaleReferencesAreProgrammerErrors) {
  BlockPool pool(1);
  BlockRef stale = (*pool.TryAllocate(1))[0].ref();
  EXPECT_DEATH(pool.Pin(stale), "not live");
}

TEST(BlockPoolTest, KeptBlocksAreThoseThatNobodyUses) {
  BlockPool pool(2);
  std::vector<BlockHold> holds = *pool.TryAllocate(2);
  EXPECT_EQ(pool.kept(), 0);
  holds[0].SetKept(true);
  holds[0].SetKept(true);
  holds[1].SetKept(true);
  EXPECT_EQ(pool.kept(), 2);
  EXPECT_TRUE(pool.KeptOnly(holds[0].ref()));
  {
    const BlockHold user = holds[0].Share();
    EXPECT_EQ(pool.kept(), 1);
    EXPECT_EQ(pool.Users(user.ref()), 1);
    const TransferPin pin = pool.Pin(holds[1].ref());
    EXPECT_EQ(pool.kept(), 0) << "it moves";
  }
  EXPECT_EQ(pool.kept(), 2);
  BlockHold moved = std::move(holds[0]);
  EXPECT_EQ(pool.kept(), 2);
  moved.SetKept(false);
  EXPECT_EQ(pool.kept(), 1);
  holds.clear();
  EXPECT_EQ(pool.kept(), 0);
  pool.CheckConservation();
}

}  // namespace
}  // namespace penstock
