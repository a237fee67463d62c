#include "common/model/text/jinja/format_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

Text Padding(const FormatSpec& spec, int64_t count) {
  Text padding;
  for (int64_t i = 0; i < count; ++i) padding.Append(spec.fill, false);
  return padding;
}

// Pads between the front (a sign) and the rest where the spec says so.
absl::StatusOr<Text> Aligned(const FormatSpec& spec, const Text& front,
                             const Text& rest, char otherwise, Budget& budget,
                             int line) {
  const auto size =
      static_cast<int64_t>(CountUtf8(front.bytes()) + CountUtf8(rest.bytes()));
  const int64_t missing = std::max<int64_t>(spec.width - size, 0);
  RETURN_IF_ERROR(budget.TakeBytes(
      front.size() + rest.size() + static_cast<size_t>(missing) * 4, line));
  const char align = spec.align == '\0' ? otherwise : spec.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  Text text;
  if (align == '=') {
    text.Append(front);
    text.Append(Padding(spec, missing));
    text.Append(rest);
    return text;
  }
  text.Append(Padding(spec, left));
  text.Append(front);
  text.Append(rest);
  text.Append(Padding(spec, missing - left));
  return text;
}

std::string Grouped(absl::string_view digits, char separator, size_t group) {
  if (separator == '\0') return std::string(digits);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) grouped.push_back(separator);
    grouped.push_back(digits[i]);
  }
  return grouped;
}

std::string SignOf(const FormatSpec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '\0' ? "" : std::string(1, spec.sign);
}

std::string Printf(char type, int precision, double value) {
  const char format[] = {'%', '.', '*', type, '\0'};
  const int size = std::snprintf(nullptr, 0, format, precision, value);
  std::vector<char> buffer(static_cast<size_t>(size) + 1);
  std::snprintf(buffer.data(), buffer.size(), format, precision, value);
  return std::string(buffer.data(), static_cast<size_t>(size));
}

// A float that is not negative, without padding.
std::string Digits(const FormatSpec& spec, double value) {
  const int precision =
      spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  std::string digits;
  switch (spec.type) {
    case 'e':
    case 'E':
    case 'f':
    case 'F':
      digits = Printf(absl::ascii_tolower(spec.type), precision, value);
      break;
    case '%':
      digits = Printf('f', precision, value * 100) + "%";
      break;
    case 'g':
    case 'G':
      digits = Printf('g', std::max(precision, 1), value);
      break;
    default:
      if (spec.precision < 0) return FormatReal(value);
      digits = Printf('g', std::max(precision, 1), value);
      // Unlike %g, it shows that it is a float.
      if (digits.find_first_not_of("0123456789") == std::string::npos) {
        digits += ".0";
      }
  }
  if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G') {
    absl::AsciiStrToUpper(&digits);
  }
  return digits;
}

}  // namespace

absl::StatusOr<Text> FormatText(const FormatSpec& spec, const Text& text,
                                Budget& budget, int line) {
  RETURN_IF_ERROR(budget.TakeBytes(text.size(), line));
  size_t end = text.size();
  if (spec.precision >= 0) {
    end = 0;
    for (int64_t i = 0; i < spec.precision && end < text.size(); ++i) {
      end += Utf8Length(text.bytes(), end);
    }
  }
  return Aligned(spec, Text(), text.Slice(0, end), '<', budget, line);
}

absl::StatusOr<Text> FormatInteger(const FormatSpec& spec, int64_t value,
                                   Budget& budget, int line) {
  int base = 10;
  std::string prefix;
  if (spec.type == 'x' || spec.type == 'X') base = 16;
  if (spec.type == 'o') base = 8;
  if (spec.type == 'b') base = 2;
  if (spec.alternate && base != 10) prefix = std::string({'0', spec.type});
  const bool negative = value < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value)
                                      : static_cast<uint64_t>(value);
  char buffer[72];
  const std::to_chars_result end =
      std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
  std::string digits(buffer, end.ptr);
  if (spec.type == 'X') absl::AsciiStrToUpper(&digits);
  if (spec.precision > static_cast<int64_t>(digits.size())) {
    RETURN_IF_ERROR(budget.TakeBytes(spec.precision, line));
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  digits = Grouped(digits, spec.grouping, base == 10 ? 3 : 4);
  return Aligned(spec, Text(SignOf(spec, negative) + prefix, false),
                 Text(digits, false), '>', budget, line);
}

absl::StatusOr<Text> FormatFloat(const FormatSpec& spec, double value,
                                 Budget& budget, int line) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits = Digits(spec, negative ? -value : value);
  if (spec.grouping != '\0') {
    const size_t whole = digits.find_first_not_of("0123456789");
    digits =
        Grouped(absl::string_view(digits).substr(0, whole), spec.grouping, 3) +
        (whole == std::string::npos ? "" : digits.substr(whole));
  }
  return Aligned(spec, Text(SignOf(spec, negative), false), Text(digits, false),
                 '>', budget, line);
}

}  // namespace penstock::jinja
