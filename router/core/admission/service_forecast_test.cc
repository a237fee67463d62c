#include "router/core/admission/service_forecast.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

void Note(ServiceForecast& forecast, int services, absl::Duration taken) {
  for (int i = 0; i < services; ++i) forecast.Note(kSecond, taken);
}

TEST(ServiceForecastTest, FirstLooks) {
  ServiceForecast forecast;
  Note(forecast, ServiceForecast::kEnough - 1, kSecond);
  EXPECT_EQ(forecast.AtLeast(kSecond), absl::ZeroDuration());
  // Neither of these says anything.
  forecast.Note(absl::ZeroDuration(), kSecond);
  forecast.Note(kSecond, -kSecond);
  EXPECT_EQ(forecast.AtLeast(kSecond), absl::ZeroDuration());
  Note(forecast, 1, kSecond);
  EXPECT_EQ(forecast.AtLeast(3 * kSecond), 3 * kSecond);
}

TEST(ServiceForecastTest, TheBestOfLateCounts) {
  ServiceForecast forecast;
  Note(forecast, 20, 4 * kSecond);
  Note(forecast, 1, kSecond / 2);
  Note(forecast, 20, 4 * kSecond);
  EXPECT_EQ(forecast.AtLeast(10 * kSecond), 5 * kSecond);
  // It is over: nothing was as fast since.
  Note(forecast, 2 * ServiceForecast::kWindow, 3 * kSecond);
  EXPECT_EQ(forecast.AtLeast(10 * kSecond), 30 * kSecond);
}

TEST(ServiceForecastTest, FasterIsBelievedAtOnce) {
  ServiceForecast forecast;
  Note(forecast, 1000, kSecond);
  Note(forecast, 1, kSecond / 4);
  EXPECT_EQ(forecast.AtLeast(kSecond), kSecond / 4);
}

}  // namespace
}  // namespace penstock
