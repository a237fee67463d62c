#include "common/runtime/load/load_display.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(LoadDisplayTest, ABarOnATerminalThatIsTakenAway) {
  ManualClock clock;
  std::ostringstream out;
  {
    LoadDisplay display(
        {.name = "tiny", .terminal = true, .out = &out, .clock = &clock});
    display.Add("reading", 1000, 4000);
    EXPECT_EQ(out.str(), "");
    clock.Advance(absl::Seconds(1));
    display.Add("reading", 1000, 4000);
    EXPECT_THAT(out.str(), HasSubstr("[###############               ] tiny "
                                     "reading:  50% of 0.00 GB"));
    const std::string before = out.str();
    display.Add("reading", 1000, 4000);  // too soon
    EXPECT_EQ(out.str(), before);
    clock.Advance(absl::Seconds(1));
    display.Add("quantising", 100, 400);  // counts anew
    EXPECT_THAT(out.str(), HasSubstr("quantising:  25%"));
  }
  EXPECT_THAT(out.str(), EndsWith("\r\x1b[K"));
}

TEST(LoadDisplayTest, LinesElsewhere) {
  ManualClock clock;
  std::ostringstream out;
  {
    LoadDisplay display(
        {.name = "big", .terminal = false, .out = &out, .clock = &clock});
    for (int i = 0; i < 10; ++i) {
      clock.Advance(absl::Seconds(1));
      display.Add("reading", 500000000, 5000000000);
    }
  }
  EXPECT_THAT(out.str(), HasSubstr("big reading:  20% of 5.00 GB\n"));
  EXPECT_THAT(out.str(), HasSubstr("big reading: 100% of 5.00 GB\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
  EXPECT_THAT(out.str(), Not(HasSubstr(" 30%")));
}

TEST(LoadDisplayTest, SilentWhenFast) {
  ManualClock clock;
  std::ostringstream out;
  {
    LoadDisplay display(
        {.name = "tiny", .terminal = true, .out = &out, .clock = &clock});
    display.Add("reading", 4000, 4000);
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace penstock
