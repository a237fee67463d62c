#include "common/model/text/civil_time.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(CivilTime, KnownDays) {
  const struct {
    int64_t seconds;
    CivilTime time;
  } cases[] = {
      {0, {1970, 1, 1, 0, 0, 0}},
      {-1, {1969, 12, 31, 23, 59, 59}},
      {951782400, {2000, 2, 29, 0, 0, 0}},
      {1721952000, {2024, 7, 26, 0, 0, 0}},
      {4107542399, {2100, 2, 28, 23, 59, 59}},
      {4107542400, {2100, 3, 1, 0, 0, 0}},
      {-62135596800, {1, 1, 1, 0, 0, 0}},
  };
  for (const auto& [seconds, expected] : cases) {
    SCOPED_TRACE(seconds);
    const CivilTime time = CivilTimeOf(seconds);
    EXPECT_EQ(time.year, expected.year);
    EXPECT_EQ(time.month, expected.month);
    EXPECT_EQ(time.day, expected.day);
    EXPECT_EQ(time.hour, expected.hour);
    EXPECT_EQ(time.minute, expected.minute);
    EXPECT_EQ(time.second, expected.second);
  }
}

// Counts the days of four centuries one by one.
TEST(CivilTime, FollowsTheCalendarDayByDay) {
  constexpr int kLengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t day = 0;
  for (int year = 1970; year < 2370; ++year) {
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    for (int month = 1; month <= 12; ++month) {
      const int length = kLengths[month - 1] + (leap && month == 2 ? 1 : 0);
      for (int at = 1; at <= length; ++at, ++day) {
        const CivilTime time = CivilTimeOf(day * 86400 + 3661);
        ASSERT_EQ(time.year, year);
        ASSERT_EQ(time.month, month);
        ASSERT_EQ(time.day, at);
        ASSERT_EQ(time.hour * 10000 + time.minute * 100 + time.second, 10101);
        ASSERT_EQ(DaysOf(time), day);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
