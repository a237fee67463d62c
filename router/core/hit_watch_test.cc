#include "router/core/hit_watch.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(HitWatchTest, NeedsAHundredPlacementsToSpeak) {
  HitWatch watch;
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(watch.Note(100, 100, 0));
  EXPECT_FALSE(watch.alarm());
  EXPECT_TRUE(watch.Note(100, 100, 0));
  EXPECT_TRUE(watch.alarm());
  EXPECT_DOUBLE_EQ(watch.error(), 1);
}

TEST(HitWatchTest, RisesAboveATenthEitherWay) {
  for (const int sign : {-1, 1}) {
    HitWatch watch;
    for (int i = 0; i < 300; ++i) watch.Note(100, 50, 50 + sign * 10);
    EXPECT_FALSE(watch.alarm());
    for (int i = 0; i < 300; ++i) watch.Note(100, 50, 50 + sign * 11);
    EXPECT_TRUE(watch.alarm());
    EXPECT_DOUBLE_EQ(watch.error(), 0.11);
  }
}

TEST(HitWatchTest, FallsBelowATwentiethAndSaysSoOnce) {
  HitWatch watch;
  for (int i = 0; i < 200; ++i) watch.Note(100, 0, 20);
  int changes = 0;
  for (int i = 0; i < 300; ++i) changes += watch.Note(100, 0, 6);
  EXPECT_TRUE(watch.alarm()) << "between the bounds nothing changes";
  for (int i = 0; i < 300; ++i) changes += watch.Note(100, 0, 4);
  EXPECT_FALSE(watch.alarm());
  EXPECT_EQ(changes, 1);
}

// One long prompt outweighs many short ones, as it does in work.
TEST(HitWatchTest, CountsTokens) {
  HitWatch watch;
  for (int i = 0; i < 99; ++i) watch.Note(10, 10, 0);
  watch.Note(100000, 100000, 100000);
  EXPECT_FALSE(watch.alarm());
}

}  // namespace
}  // namespace penstock
