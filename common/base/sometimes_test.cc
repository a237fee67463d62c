#include "common/base/sometimes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

MATCHER_P2(Is, text, hits, "") {
  return arg.text == text && arg.hits == static_cast<uint64_t>(hits);
}

void Branch(bool rare) {
  if (rare) Sometimes<"b: the rare branch">();
  Sometimes<"a: the other">();
}

TEST(SometimesTest, MarksAreKnownBeforeTheyAreHit) {
  ResetCoverageMarks();
  EXPECT_THAT(CoverageMarks(),
              ElementsAre(Is("a: the other", 0), Is("b: the rare branch", 0)));
  Branch(false);
  Branch(true);
  EXPECT_THAT(CoverageMarks(),
              ElementsAre(Is("a: the other", 2), Is("b: the rare branch", 1)));
}

}  // namespace
}  // namespace penstock
