#include "common/engine/tier_fetch.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(TierFetchTest, WaitsForItsPagesAndGoesOnBehindThem) {
  TierFetch fetch(7, 2, 3);  // positions 32 to 80
  EXPECT_EQ(fetch.Limit(32), 32);
  EXPECT_EQ(fetch.Skip(32), 32);
  fetch.SetPage(1, true);
  EXPECT_EQ(fetch.Skip(32), 32) << "its first page is missing";
  fetch.SetPage(0, true);
  EXPECT_EQ(fetch.Skip(32), 64);
  EXPECT_EQ(fetch.Limit(64), 64);
  fetch.SetPage(2, true);
  EXPECT_EQ(fetch.Skip(64), 80);
  EXPECT_FALSE(fetch.Over(64));
  EXPECT_TRUE(fetch.Over(80));
  EXPECT_EQ(fetch.Limit(80), TierFetch::kNoLimit);
}

TEST(TierFetchTest, TheFrontIsComputedUpToTheFirstPage) {
  TierFetch fetch(7, 2, 1);
  EXPECT_EQ(fetch.Limit(0), 32);
  EXPECT_EQ(fetch.Limit(20), 32);
  EXPECT_EQ(fetch.Skip(20), 20);
  EXPECT_EQ(fetch.Skip(16), 16);
}

TEST(TierFetchTest, APageThatDoesNotComeIsComputedAlone) {
  TierFetch fetch(7, 0, 3);
  fetch.SetPage(0, false);
  EXPECT_EQ(fetch.Limit(0), 16);
  fetch.SetPage(1, true);
  fetch.SetPage(2, false);
  EXPECT_EQ(fetch.Limit(5), 16);
  EXPECT_EQ(fetch.Skip(16), 32);
  EXPECT_EQ(fetch.Limit(32), TierFetch::kNoLimit);
  EXPECT_TRUE(fetch.Over(32));
  EXPECT_FALSE(fetch.Over(0));
}

TEST(TierFetchTest, GivesUpFromTheFirstPageThatIsLate) {
  TierFetch fetch(7, 4, 4);
  fetch.SetPage(0, true);
  fetch.SetPage(2, true);
  EXPECT_EQ(fetch.pending(), 2);
  EXPECT_EQ(fetch.GiveUp(), 5);
  EXPECT_EQ(fetch.pending(), 0);
  EXPECT_EQ(fetch.Skip(64), 80);
  EXPECT_EQ(fetch.Limit(80), TierFetch::kNoLimit);
  fetch.SetPage(1, true);  // it comes after all
  EXPECT_EQ(fetch.Skip(64), 80);
}

}  // namespace
}  // namespace penstock
