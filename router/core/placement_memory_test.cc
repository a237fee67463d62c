#include "router/core/placement_memory.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

TEST(PlacementMemoryTest, KeepsLegsApart) {
  PlacementMemory memory;
  memory.Note(kP, 5, {3, Incarnation(30)});
  memory.Note(kD, 5, {4, Incarnation(40)});
  memory.Note(kD, 0, {6, Incarnation(60)});
  EXPECT_EQ(memory.last(kP), 3u);
  EXPECT_EQ(memory.last(kD), 6u);
  EXPECT_EQ(memory.ServerOf(kP, 5)->slot, 3u);
  EXPECT_EQ(memory.ServerOf(kD, 5)->slot, 4u);
  EXPECT_EQ(memory.ServerOf(kD, 5)->incarnation, Incarnation(40));
  EXPECT_FALSE(memory.ServerOf(kD, 0).has_value());
  EXPECT_FALSE(memory.ServerOf(kD, 7).has_value());
}

// Two generations of 10 sessions: the last 10 are always known, and one that
// goes on is never forgotten.
TEST(PlacementMemoryTest, ForgetsTheOldestSessions) {
  PlacementMemory memory(10);
  for (uint64_t session = 1; session <= 1000; ++session) {
    memory.Note(kD, session, {7, Incarnation(session)});
    memory.Note(kP, 1, {77, Incarnation(1)});
    for (uint64_t back = 0; back < 10 && back < session; ++back) {
      ASSERT_TRUE(memory.ServerOf(kD, session - back).has_value());
    }
    EXPECT_EQ(memory.ServerOf(kP, 1)->slot, 77u);
    if (session > 21) {
      EXPECT_FALSE(memory.ServerOf(kD, session - 20));
    }
  }
}

TEST(PlacementMemoryTest, SessionsAreTheirTenants) {
  EXPECT_EQ(SessionNumber("t", ""), 0u);
  EXPECT_NE(SessionNumber("t", "s"), 0u);
  EXPECT_EQ(SessionNumber("t", "s"), SessionNumber("t", "s"));
  EXPECT_NE(SessionNumber("t", "s"), SessionNumber("u", "s"));
  EXPECT_NE(SessionNumber("a", "bc"), SessionNumber("ab", "c"));
}

}  // namespace
}  // namespace penstock
