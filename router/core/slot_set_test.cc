#include "router/core/slot_set.h"

#include <set>
#include <vector>

#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAreArray;

std::vector<size_t> MembersOf(const SlotSet& set) {
  std::vector<size_t> members;
  set.ForEach([&](size_t slot) { members.push_back(slot); });
  return members;
}

// Beside std::set, over random sets of sizes around a word's.
TEST(SlotSetTest, IsASetOfNumbers) {
  SeededRandom random(7);
  for (const size_t size : {1, 63, 64, 65, 128, 300}) {
    SlotSet a(size), b(size);
    std::set<size_t> in_a, in_b;
    for (size_t i = 0; i < size; ++i) {
      a.Set(random.Below(size));
      b.Set(random.Below(size));
      a.Set(random.Below(size), false);
    }
    for (size_t i = 0; i < size; ++i) {
      if (a.Contains(i)) in_a.insert(i);
      if (b.Contains(i)) in_b.insert(i);
    }
    EXPECT_THAT(MembersOf(a), ElementsAreArray(in_a));
    EXPECT_EQ(a.count(), in_a.size());
    EXPECT_EQ(a.empty(), in_a.empty());
    size_t rank = 0;
    for (size_t member : in_a) EXPECT_EQ(a.Nth(rank++), member);
    for (size_t i = 0; i < size && !in_a.empty(); ++i) {
      const auto above = in_a.upper_bound(i);
      EXPECT_EQ(a.After(i), above == in_a.end() ? *in_a.begin() : *above);
    }
    const SlotSet both = a & b, either = a | b, only = a - b;
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(both.Contains(i), in_a.count(i) > 0 && in_b.count(i) > 0);
      EXPECT_EQ(either.Contains(i), in_a.count(i) > 0 || in_b.count(i) > 0);
      EXPECT_EQ(only.Contains(i), in_a.count(i) > 0 && in_b.count(i) == 0);
    }
  }
}

TEST(SlotSetTest, WhatIsCutOffIsGone) {
  SlotSet set(100);
  for (size_t i = 0; i < 100; ++i) set.Set(i);
  set.Resize(70);
  EXPECT_EQ(set.count(), 70u);
  EXPECT_FALSE(set.Contains(70));
  set.Resize(100);
  EXPECT_EQ(set.count(), 70u);
  EXPECT_EQ(set.After(69), 0u);
}

}  // namespace
}  // namespace penstock
