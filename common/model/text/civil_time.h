#pragma once

#include <cstdint>

namespace penstock {

// A day and a time of day of the proleptic Gregorian calendar, in whatever zone
// the caller means. A value: who knows the clock makes it.
struct CivilTime {
  int year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;    // 1 to 31
  int hour = 0;
  int minute = 0;
  int second = 0;
};

// Of seconds since 1970 that already count the zone's offset.
CivilTime CivilTimeOf(int64_t local_seconds);

// Days since 1970-01-01.
int64_t DaysOf(const CivilTime& time);

}  // namespace penstock
