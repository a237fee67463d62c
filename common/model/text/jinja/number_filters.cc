// Filters that make numbers.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/operators.h"

namespace penstock::jinja {
namespace {

constexpr int64_t kMaxPrecision = 300;

absl::StatusOr<Value> Absolute(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  if (const double* real = value.real()) return Value(std::abs(*real));
  const int64_t* integer = value.AsInteger();
  if (integer == nullptr) {
    return call.Fail(absl::StrCat("of a ", value.type_name()));
  }
  return *integer < 0 ? Signed(true, value, call.line)
                      : absl::StatusOr<Value>(Value(*integer));
}

// Without the white space around and the underscores between digits; nullopt
// where an underscore stands elsewhere.
absl::optional<std::string> Plain(absl::string_view text) {
  const Range range = Stripped(text, Side::kBoth);
  text = text.substr(range.begin, range.end - range.begin);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain.push_back(text[i]);
      continue;
    }
    if (i == 0 || i + 1 == text.size() || !absl::ascii_isalnum(text[i - 1]) ||
        !absl::ascii_isalnum(text[i + 1])) {
      return absl::nullopt;
    }
  }
  return plain;
}

absl::optional<double> ParseFloat(absl::string_view text) {
  absl::optional<std::string> plain = Plain(text);
  if (!plain.has_value() || plain->empty()) return absl::nullopt;
  // Hexadecimal floats are C's alone; names of no number need all letters.
  if (plain->find_first_of("xXpP(") != std::string::npos) return absl::nullopt;
  double value = 0;
  if (!absl::SimpleAtod(*plain, &value)) return absl::nullopt;
  return value;
}

// Digits of a base from 2 to 36, with the prefix that Python allows.
bool IsInteger(std::string text, int64_t base) {
  size_t at = text.empty() || (text[0] != '-' && text[0] != '+') ? 0 : 1;
  const std::string prefix = absl::AsciiStrToLower(text.substr(at, 2));
  if ((base == 16 && prefix == "0x") || (base == 8 && prefix == "0o") ||
      (base == 2 && prefix == "0b")) {
    at += 2;
  }
  if (at == text.size()) return false;
  for (; at < text.size(); ++at) {
    const char c = absl::ascii_tolower(text[at]);
    const int64_t digit = absl::ascii_isdigit(c)   ? c - '0'
                          : absl::ascii_isalpha(c) ? c - 'a' + 10
                                                   : base;
    if (digit >= base) return false;
  }
  return true;
}

absl::StatusOr<absl::optional<int64_t>> ParseInteger(absl::string_view text,
                                                     int64_t base, int line) {
  const absl::optional<std::string> plain = Plain(text);
  if (!plain.has_value() || !IsInteger(*plain, base)) {
    return absl::optional<int64_t>();
  }
  std::string digits = *plain;
  const size_t prefix = digits.find_first_of("xXoO");
  if ((base == 16 || base == 8) && prefix != std::string::npos) {
    digits.erase(prefix, 1);
  }
  if (base == 2 && digits.find_first_of("bB") != std::string::npos) {
    digits.erase(digits.find_first_of("bB"), 1);
  }
  errno = 0;
  const int64_t value =
      std::strtoll(digits.c_str(), nullptr, static_cast<int>(base));
  if (errno == ERANGE) return Unknown(line, "an integer over 64 bits");
  return absl::optional<int64_t>(value);
}

absl::StatusOr<absl::optional<int64_t>> Truncated(double value, int line) {
  if (!std::isfinite(value)) return absl::optional<int64_t>();
  if (std::abs(value) >= 9.2e18) {
    return Unknown(line, "an integer over 64 bits");
  }
  return absl::optional<int64_t>(static_cast<int64_t>(value));
}

absl::Status CheckDefined(const Value& value, const Invocation& call) {
  const Undefined* undefined = value.undefined();
  return undefined == nullptr ? absl::OkStatus()
                              : call.Fail(absl::StrCat("of ", undefined->what,
                                                       ", which is undefined"));
}

absl::StatusOr<Value> ToInteger(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"default", "base"}, 0));
  ASSIGN_OR_RETURN(const int64_t base, IntegerArgument(call, bound[1], 10));
  RETURN_IF_ERROR(CheckDefined(value, call));
  const Value otherwise = bound[0] == nullptr ? Value(int64_t{0}) : *bound[0];
  if (const int64_t* integer = value.AsInteger()) return Value(*integer);
  absl::optional<int64_t> number;
  absl::optional<double> real;
  if (value.real() != nullptr) real = *value.real();
  if (const Text* text = value.text()) {
    if (base < 2 || base > 36) {
      return Unknown(call.line, absl::StrCat("base ", base));
    }
    RETURN_IF_ERROR(call.budget.TakeBytes(text->size(), call.line));
    ASSIGN_OR_RETURN(number, ParseInteger(text->bytes(), base, call.line));
    if (!number.has_value()) real = ParseFloat(text->bytes());
  }
  if (!number.has_value() && real.has_value()) {
    ASSIGN_OR_RETURN(number, Truncated(*real, call.line));
  }
  return number.has_value() ? Value(*number) : otherwise;
}

absl::StatusOr<Value> ToFloat(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"default"}, 0));
  RETURN_IF_ERROR(CheckDefined(value, call));
  if (const int64_t* integer = value.AsInteger()) {
    return Value(static_cast<double>(*integer));
  }
  if (value.real() != nullptr) return value;
  if (const Text* text = value.text()) {
    RETURN_IF_ERROR(call.budget.TakeBytes(text->size(), call.line));
    const absl::optional<double> real = ParseFloat(text->bytes());
    if (real.has_value()) return Value(*real);
  }
  return bound[0] == nullptr ? Value(0.0) : *bound[0];
}

// To the nearest, ties to even, as the decimal digits say.
double Rounded(double value, int precision) {
  if (!std::isfinite(value)) return value;
  char buffer[700];
  std::snprintf(buffer, sizeof(buffer), "%.*f", precision, value);
  return std::strtod(buffer, nullptr);
}

absl::StatusOr<Value> Round(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"precision", "method"}, 0));
  ASSIGN_OR_RETURN(const int64_t precision, IntegerArgument(call, bound[0], 0));
  ASSIGN_OR_RETURN(const Text method, TextArgument(call, bound[1], "common"));
  const absl::string_view name = method.bytes();
  if (name != "common" && name != "ceil" && name != "floor") {
    return call.Fail("takes the method common, ceil or floor");
  }
  const int64_t* integer = value.AsInteger();
  if (integer == nullptr && value.real() == nullptr) {
    return call.Fail(absl::StrCat("of a ", value.type_name()));
  }
  if (precision < 0 || precision > kMaxPrecision) {
    return Unknown(call.line, absl::StrCat("a precision of ", precision));
  }
  if (name == "common") {
    if (integer != nullptr) return Value(*integer);
    return Value(Rounded(*value.real(), static_cast<int>(precision)));
  }
  const double real =
      integer != nullptr ? static_cast<double>(*integer) : *value.real();
  if (!std::isfinite(real)) return call.Fail("of no finite number");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = real * scale;
  return Value((name == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
               scale);
}

absl::StatusOr<Value> Sum(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"attribute", "start"}, 0));
  Value sum = bound[1] == nullptr ? Value(int64_t{0}) : *bound[1];
  if (sum.text() != nullptr) return call.Fail("cannot sum strs");
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  for (const Value& item : items->items) {
    Value part = item;
    if (bound[0] != nullptr) {
      ASSIGN_OR_RETURN(
          part, MemberAt(item, *bound[0], nullptr, call.budget, call.line));
    }
    ASSIGN_OR_RETURN(
        sum, Apply(BinaryOperator::kAdd, sum, part, call.budget, call.line));
  }
  return sum;
}

constexpr Filter kFilters[] = {
    {"abs", Absolute}, {"float", ToFloat}, {"int", ToInteger},
    {"round", Round},  {"sum", Sum},
};

}  // namespace

absl::Span<const Filter> NumberFilters() { return kFilters; }

}  // namespace penstock::jinja
