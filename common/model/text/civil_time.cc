#include "common/model/text/civil_time.h"

namespace penstock {
namespace {

constexpr int64_t kSecondsInDay = 86400;
constexpr int64_t kDaysInEra = 146097;  // 400 years
// From 0000-03-01, where an era begins, to 1970-01-01.
constexpr int64_t kEpoch = 719468;

int64_t FloorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

// Years begin in March here, so that the leap day is the last one.
CivilTime CivilTimeOf(int64_t local_seconds) {
  const int64_t days = FloorDivide(local_seconds, kSecondsInDay) + kEpoch;
  const int64_t in_day =
      local_seconds - FloorDivide(local_seconds, kSecondsInDay) * kSecondsInDay;
  const int64_t era = FloorDivide(days, kDaysInEra);
  const int64_t in_era = days - era * kDaysInEra;
  const int64_t year_of_era =
      (in_era - in_era / 1460 + in_era / 36524 - in_era / (kDaysInEra - 1)) /
      365;
  const int64_t in_year =
      in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * in_year + 2) / 153;
  CivilTime time;
  time.day = static_cast<int>(in_year - (153 * month + 2) / 5 + 1);
  time.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  time.year =
      static_cast<int>(year_of_era + era * 400 + (time.month <= 2 ? 1 : 0));
  time.hour = static_cast<int>(in_day / 3600);
  time.minute = static_cast<int>(in_day / 60 % 60);
  time.second = static_cast<int>(in_day % 60);
  return time;
}

int64_t DaysOf(const CivilTime& time) {
  const int64_t year = time.year - (time.month <= 2 ? 1 : 0);
  const int64_t era = FloorDivide(year, 400);
  const int64_t year_of_era = year - era * 400;
  const int64_t month = time.month > 2 ? time.month - 3 : time.month + 9;
  const int64_t in_year = (153 * month + 2) / 5 + time.day - 1;
  return era * kDaysInEra + 365 * year_of_era + year_of_era / 4 -
         year_of_era / 100 + in_year - kEpoch;
}

}  // namespace penstock
