#include "tools/simulator/cli/seed_range.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(SeedRangeTest, ReadsOneSeedAndARange) {
  EXPECT_EQ(ParseSeedRange("7")->count(), 1u);
  const SeedRange range = *ParseSeedRange("3..12");
  EXPECT_EQ(range.first, 3u);
  EXPECT_EQ(range.last, 12u);
}

TEST(SeedRangeTest, RefusesWhatIsNone) {
  for (const char* wrong : {"", "a", "3..", "..3", "4..3", "1..2..3"}) {
    EXPECT_FALSE(ParseSeedRange(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace penstock
