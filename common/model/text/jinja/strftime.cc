#include "common/model/text/jinja/strftime.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

constexpr absl::string_view kDays[] = {"Sunday",    "Monday",   "Tuesday",
                                       "Wednesday", "Thursday", "Friday",
                                       "Saturday"};
constexpr absl::string_view kMonths[] = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

// The fields that more than one directive reads.
class Calendar {
 public:
  explicit Calendar(const CivilTime& time) : time_(time) {}

  const CivilTime& time() const { return time_; }
  // 0 is Sunday; 1970 began on a Thursday.
  int weekday() const {
    return static_cast<int>((DaysOf(time_) % 7 + 7 + 4) % 7);
  }
  int monday_weekday() const { return (weekday() + 6) % 7; }
  // From 0.
  int day_of_year() const {
    return static_cast<int>(DaysOf(time_) - DaysOf({time_.year, 1, 1}));
  }
  int hour12() const { return time_.hour % 12 == 0 ? 12 : time_.hour % 12; }

  // The week of ISO 8601 and the year that it belongs to.
  struct Week {
    int year;
    int week;
  };
  Week iso_week() const {
    // The Thursday of the same week decides.
    const CivilTime thursday =
        CivilTimeOf((DaysOf(time_) + 3 - monday_weekday()) * int64_t{86400});
    return {thursday.year, Calendar(thursday).day_of_year() / 7 + 1};
  }

 private:
  CivilTime time_;
};

// A directive's text; nullopt when it is not known.
absl::optional<std::string> OfDay(char directive, const Calendar& calendar) {
  const CivilTime& time = calendar.time();
  const absl::string_view day = kDays[calendar.weekday()];
  const absl::string_view month = kMonths[time.month - 1];
  switch (directive) {
    case 'a':
      return std::string(day.substr(0, 3));
    case 'A':
      return std::string(day);
    case 'b':
    case 'h':
      return std::string(month.substr(0, 3));
    case 'B':
      return std::string(month);
    case 'C':
      return absl::StrFormat("%02d", time.year / 100);
    case 'd':
      return absl::StrFormat("%02d", time.day);
    case 'e':
      return absl::StrFormat("%2d", time.day);
    case 'G':
      return absl::StrCat(calendar.iso_week().year);
    case 'j':
      return absl::StrFormat("%03d", calendar.day_of_year() + 1);
    case 'm':
      return absl::StrFormat("%02d", time.month);
    case 'u':
      return absl::StrCat(calendar.monday_weekday() + 1);
    case 'U':
      return absl::StrFormat(
          "%02d", (calendar.day_of_year() + 7 - calendar.weekday()) / 7);
    case 'V':
      return absl::StrFormat("%02d", calendar.iso_week().week);
    case 'w':
      return absl::StrCat(calendar.weekday());
    case 'W':
      return absl::StrFormat(
          "%02d", (calendar.day_of_year() + 7 - calendar.monday_weekday()) / 7);
    case 'y':
      return absl::StrFormat("%02d", time.year % 100);
    case 'Y':
      return absl::StrCat(time.year);
    default:
      return absl::nullopt;
  }
}

absl::optional<std::string> OfClock(char directive, const Calendar& calendar) {
  const CivilTime& time = calendar.time();
  switch (directive) {
    case 'f':
      return std::string("000000");
    case 'H':
      return absl::StrFormat("%02d", time.hour);
    case 'I':
      return absl::StrFormat("%02d", calendar.hour12());
    case 'k':
      return absl::StrFormat("%2d", time.hour);
    case 'l':
      return absl::StrFormat("%2d", calendar.hour12());
    case 'M':
      return absl::StrFormat("%02d", time.minute);
    case 'p':
      return std::string(time.hour < 12 ? "AM" : "PM");
    case 'P':
      return std::string(time.hour < 12 ? "am" : "pm");
    case 'S':
      return absl::StrFormat("%02d", time.second);
    // A time of no zone.
    case 'z':
    case 'Z':
      return std::string();
    case 'n':
      return std::string("\n");
    case 't':
      return std::string("\t");
    case '%':
      return std::string("%");
    default:
      return absl::nullopt;
  }
}

// Directives that stand for several.
absl::string_view Expansion(char directive) {
  switch (directive) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'r':
      return "%I:%M:%S %p";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return "";
  }
}

// A directive without its leading zero or space: `%-d`.
std::string Unpadded(std::string text) {
  size_t at = 0;
  while (at + 1 < text.size() && (text[at] == '0' || text[at] == ' ')) ++at;
  return text.substr(at);
}

absl::StatusOr<std::string> Formatted(absl::string_view format,
                                      const Calendar& calendar, int line) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    const bool unpadded = format[i + 1] == '-' && i + 2 < format.size();
    i += unpadded ? 2 : 1;
    absl::optional<std::string> text = OfDay(format[i], calendar);
    if (!text.has_value()) text = OfClock(format[i], calendar);
    const absl::string_view parts = Expansion(format[i]);
    if (!text.has_value() && !parts.empty() && !unpadded) {
      ASSIGN_OR_RETURN(text, Formatted(parts, calendar, line));
    }
    if (!text.has_value()) {
      return Unknown(
          line, absl::StrCat("time format '%",
                             format.substr(i, Utf8Length(format, i)), "'"));
    }
    out += unpadded ? Unpadded(*std::move(text)) : *text;
  }
  return out;
}

}  // namespace

absl::StatusOr<Value> Strftime(const Text& format, const Invocation& call) {
  // The longest directive writes 24 bytes for two.
  RETURN_IF_ERROR(call.budget.TakeBytes(format.size() * 16, call.line));
  ASSIGN_OR_RETURN(
      const std::string text,
      Formatted(format.bytes(), Calendar(*call.world.now), call.line));
  bool from_message = false;
  for (const Text::Run& run : format.runs()) from_message |= run.from_message;
  return TextValue(text, from_message);
}

}  // namespace penstock::jinja
