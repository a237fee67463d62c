#include "tools/penstock/restart_pause.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(RestartPauseTest, ShortLivesMakePausesGrowUpToTheLongest) {
  RestartPause pause;
  for (int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_EQ(pause.After(absl::Seconds(3)), absl::Seconds(seconds));
  }
}

TEST(RestartPauseTest, AGoodLifeStartsOver) {
  RestartPause pause;
  pause.After(absl::ZeroDuration());
  pause.After(absl::ZeroDuration());
  EXPECT_EQ(pause.After(absl::Minutes(1)), absl::Seconds(1));
  EXPECT_EQ(pause.After(absl::Seconds(59)), absl::Seconds(2));
}

}  // namespace
}  // namespace penstock
