#include "kvstore/core/block_census.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(BlockCensusTest, ItIsWhatAllHoldersSay) {
  BlockPool pool(4);
  std::vector<BlockHold> mine = *pool.TryAllocate(3);
  std::vector<BlockHold> yours;
  yours.push_back(mine[1].Share());
  const TransferPin pin = pool.Pin(mine[2].ref());
  pool.Quarantine(mine[2].ref());
  pool.SetCached(mine[0].ref(), true);
  BlockCensus census(&pool);
  EXPECT_FALSE(census.Compare().ok());
  census.Add(mine);
  census.Add(yours);
  census.Add(BlockHold());
  census.Add(pin);
  census.AddQuarantined(pin.ref());
  census.AddCached(mine[0].ref());
  EXPECT_EQ(census.Compare(), absl::OkStatus());
  pool.SetCached(mine[0].ref(), false);
  EXPECT_EQ(census.Compare().message(),
            "block 0 has 1 references and 0 pins; its holders have 1 and 0, "
            "cached");
  pool.Reclaim(pin.ref());
}

TEST(BlockCensusTest, EachFieldCounts) {
  BlockPool pool(1);
  const std::vector<BlockHold> hold = *pool.TryAllocate(1);
  const TransferPin pin = pool.Pin(hold[0].ref());
  auto compare = [&](int holds, int pins, bool quarantined, bool cached) {
    BlockCensus census(&pool);
    for (int i = 0; i < holds; ++i) census.Add(hold);
    for (int i = 0; i < pins; ++i) census.Add(pin);
    if (quarantined) census.AddQuarantined(pin.ref());
    if (cached) census.AddCached(pin.ref());
    return census.Compare().ok();
  };
  EXPECT_TRUE(compare(1, 1, false, false));
  EXPECT_FALSE(compare(0, 1, false, false));
  EXPECT_FALSE(compare(2, 1, false, false));
  EXPECT_FALSE(compare(1, 0, false, false));
  EXPECT_FALSE(compare(1, 2, false, false));
  EXPECT_FALSE(compare(1, 1, true, false));
  EXPECT_FALSE(compare(1, 1, false, true));
}

TEST(BlockCensusTest, AnEarlierLifeIsNoHold) {
  BlockPool pool(1);
  const BlockRef first = (*pool.TryAllocate(1))[0].ref();
  const std::vector<BlockHold> again = *pool.TryAllocate(1);
  BlockCensus census(&pool);
  census.Add(again);
  census.AddCached(first);
  EXPECT_EQ(census.Compare().message(), "1 holds name a block's earlier life");
}

}  // namespace
}  // namespace penstock
