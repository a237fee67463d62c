#include "kvstore/disk/segment_index.h"

#include <algorithm>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr TierPolicy::Cost kCost{1.0, 0.0, 1};

// Segments of 4 slots of 100 bytes behind 10 bytes: 410 each.
SegmentIndex::Options Small(uint64_t max_bytes) {
  return {.header_bytes = 10,
          .slot_bytes = 100,
          .slots_per_segment = 4,
          .max_bytes = max_bytes};
}

BlockHash H(uint64_t value) { return BlockHash(value); }

void Write(SegmentIndex& index, uint64_t hash) {
  const auto slot = index.TakeSlot();
  ASSERT_TRUE(slot.has_value());
  index.Settle(*slot);
  index.Put(H(hash), BlockHash(), kCost, *slot);
}

TEST(SegmentIndexTest, SlotsAreTakenInOrderUntilTheSegmentIsFull) {
  SegmentIndex index(Small(1000));
  EXPECT_EQ(index.TakeSlot(), std::nullopt);
  index.Open(1);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(index.TakeSlot(), (SegmentSlot{1, i}));
  }
  EXPECT_EQ(index.TakeSlot(), std::nullopt);
  EXPECT_EQ(index.footprint(), 410u);
  EXPECT_TRUE(index.MayOpen());
}

TEST(SegmentIndexTest, APageLiesWhereItWasWrittenLast) {
  SegmentIndex index(Small(10000));
  index.Open(1);
  Write(index, 5);
  Write(index, 5);
  EXPECT_EQ(index.Find(H(5)), (SegmentSlot{1, 1}));
  EXPECT_EQ(index.pages(), 1u);
  index.Forget(H(5));
  EXPECT_EQ(index.Find(H(5)), std::nullopt);
}

TEST(SegmentIndexTest, TheEmptiestSegmentGoesAndItsBestPagesStay) {
  SegmentIndex index(Small(4 * 410));
  for (uint64_t segment = 1; segment <= 3; ++segment) {
    index.Open(segment);
    for (uint64_t i = 0; i < 4; ++i) Write(index, 10 * segment + i);
    if (segment < 3) index.Seal();
  }
  EXPECT_TRUE(index.PlanCleaning().segments.empty());
  index.Seal();
  index.Open(4);
  for (int i = 0; i < 5; ++i) {
    index.Use(H(21));
    index.Use(H(23));
  }
  // 10, 11 are the oldest; segment 1 has two left then: half a segment.
  const auto plan = index.PlanCleaning();
  EXPECT_EQ(plan.segments, std::vector<uint64_t>{1});
  EXPECT_EQ(plan.survivors, (std::vector<BlockHash>{H(12), H(13)}));
  EXPECT_EQ(index.evicted(), 2u);
  for (BlockHash hash : plan.survivors) {
    const auto slot = index.TakeSlot();
    index.Settle(*slot);
    index.Move(hash, *slot);
  }
  index.Drop(1);
  EXPECT_EQ(index.pages(), 10u);
  EXPECT_EQ(index.Find(H(12)), (SegmentSlot{4, 0}));
  EXPECT_TRUE(index.MayOpen());
}

TEST(SegmentIndexTest, WhatIsBeingWrittenStays) {
  SegmentIndex index(Small(2 * 410));
  index.Open(1);
  const auto slot = index.TakeSlot();
  index.Seal();
  EXPECT_FALSE(index.Done(1));
  index.Open(2);
  EXPECT_TRUE(index.PlanCleaning().segments.empty());
  index.Settle(*slot);
  EXPECT_TRUE(index.Done(1));
  EXPECT_EQ(index.PlanCleaning().segments, std::vector<uint64_t>{1});
}

// Pages that claim to follow each other in a circle have no last one.
TEST(SegmentIndexTest, ACircleOfParentsDoesNotStopTheCleaning) {
  SegmentIndex index(Small(2 * 410));
  index.Open(1);
  for (uint64_t i = 0; i < 4; ++i) {
    const auto slot = index.TakeSlot();
    index.Settle(*slot);
    index.Put(H(1 + i), H(1 + (i + 1) % 4), kCost, *slot);
  }
  index.Seal();
  index.Open(2);
  const auto plan = index.PlanCleaning();
  EXPECT_EQ(plan.segments, std::vector<uint64_t>{1});
  EXPECT_TRUE(plan.survivors.empty());
}

TEST(SegmentIndexTest, RandomUseKeepsTheCapAndTheCounts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    SegmentIndex index(Small(8 * 410));
    uint64_t number = 0;
    for (int i = 0; i < 2000; ++i) {
      if (random.Below(4) == 0) index.Use(H(1 + random.Below(60)));
      if (random.Below(50) == 0) index.Forget(H(1 + random.Below(60)));
      auto slot = index.TakeSlot();
      if (!slot.has_value()) {
        if (index.active()) index.Seal();
        ASSERT_TRUE(index.MayOpen()) << "seed " << seed;
        index.Open(++number);
        const auto plan = index.PlanCleaning();
        ASSERT_LE(plan.survivors.size(), 2u);
        for (BlockHash hash : plan.survivors) {
          const auto to = index.TakeSlot();
          index.Settle(*to);
          index.Move(hash, *to);
        }
        for (uint64_t gone : plan.segments) index.Drop(gone);
        slot = index.TakeSlot();
      }
      index.Settle(*slot);
      index.Put(H(1 + random.Below(60)), H(100 + random.Below(3)), kCost,
                *slot);
      ASSERT_LE(index.footprint(), 8u * 410);
      ASSERT_LE(index.pages(), 32u);
    }
    EXPECT_GT(index.evicted(), 0u);
  }
}

}  // namespace
}  // namespace penstock
