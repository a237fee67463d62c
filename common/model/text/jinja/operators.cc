#include "common/model/text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/formatting.h"
#include "common/model/text/jinja/invocation.h"

namespace penstock::jinja {
namespace {

absl::StatusOr<Value> Add(const Value& left, const Value& right, Budget& budget,
                          int line) {
  if (left.text() != nullptr && right.text() != nullptr) {
    RETURN_IF_ERROR(
        budget.TakeBytes(left.text()->size() + right.text()->size(), line));
    Text sum = *left.text();
    sum.Append(*right.text());
    return Value(std::move(sum));
  }
  const bool lists = left.list() != nullptr && right.list() != nullptr;
  if (lists && ((left.list()->kind == List::Kind::kList &&
                 right.list()->kind == List::Kind::kList) ||
                (left.list()->is_tuple() && right.list()->is_tuple()))) {
    const List& tail = *right.list();
    RETURN_IF_ERROR(budget.TakeBytes(
        (left.list()->items.size() + tail.items.size()) * sizeof(Value), line));
    List sum = *left.list();
    sum.items.insert(sum.items.end(), tail.items.begin(), tail.items.end());
    sum.depth = std::max(sum.depth, tail.depth);
    if (sum.is_tuple()) sum.kind = List::Kind::kTuple;
    return Value(std::move(sum));
  }
  return Mismatch("+", left, right, line);
}

// Python rounds to minus infinity; the remainder has the divisor's sign.
int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

double FloorModulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                      : remainder;
}

// Python's `**` of integers: a negative power gives a float.
absl::StatusOr<Value> Power(int64_t base, int64_t power, int line) {
  if (power < 0) {
    if (base == 0) return Failure(line, "zero to a negative power");
    return Value(
        std::pow(static_cast<double>(base), static_cast<double>(power)));
  }
  int64_t result = 1;
  while (power > 0) {
    if ((power & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return Unknown(line, "an integer over 64 bits");
    }
    power >>= 1;
    if (power > 0 && __builtin_mul_overflow(base, base, &base)) {
      return Unknown(line, "an integer over 64 bits");
    }
  }
  return Value(result);
}

absl::StatusOr<Value> Integers(BinaryOperator op, int64_t a, int64_t b,
                               int line) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOperator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOperator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOperator::kDivide:
    case BinaryOperator::kFloor:
    case BinaryOperator::kModulo:
      if (b == 0) return Failure(line, "division by zero");
      if (op == BinaryOperator::kDivide) {
        return Value(static_cast<double>(a) / static_cast<double>(b));
      }
      overflow = b == -1 && a == INT64_MIN;
      if (overflow) break;
      result = FloorDivide(a, b);
      if (op == BinaryOperator::kModulo) result = a - result * b;
      break;
    case BinaryOperator::kPower:
      return Power(a, b, line);
  }
  if (overflow) return Unknown(line, "an integer over 64 bits");
  return Value(result);
}

absl::StatusOr<Value> Reals(BinaryOperator op, double a, double b, int line) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value(a + b);
    case BinaryOperator::kSubtract:
      return Value(a - b);
    case BinaryOperator::kMultiply:
      return Value(a * b);
    case BinaryOperator::kPower:
      if (a == 0 && b < 0) return Failure(line, "zero to a negative power");
      if (a < 0 && b != std::floor(b)) {
        return Unknown(line, "a complex number");
      }
      if (std::isfinite(a) && std::isfinite(b) &&
          !std::isfinite(std::pow(a, b))) {
        return Failure(line, "a power that is too large");
      }
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return Failure(line, "division by zero");
  if (op == BinaryOperator::kDivide) return Value(a / b);
  if (op == BinaryOperator::kModulo) return Value(FloorModulo(a, b));
  return Value(std::floor(a / b));
}

constexpr absl::string_view kSpellings[] = {"+",  "-", "*", "/",
                                            "//", "%", "**"};

// A text or list several times over.
absl::StatusOr<Value> Repeated(const Value& sequence, int64_t times,
                               Budget& budget, int line) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const size_t size = sequence.text() != nullptr
                          ? sequence.text()->size()
                          : sequence.list()->items.size() * sizeof(Value);
  if (size > 0 && count > (size_t{1} << 40) / size) {
    return Exhausted(line, "repeats too much");
  }
  RETURN_IF_ERROR(budget.TakeBytes(count * size, line));
  if (const Text* text = sequence.text()) {
    Text repeated;
    for (size_t i = 0; i < (size == 0 ? 0 : count); ++i) repeated.Append(*text);
    return Value(std::move(repeated));
  }
  const List& list = *sequence.list();
  List repeated;
  repeated.kind = list.is_tuple() ? List::Kind::kTuple : List::Kind::kList;
  repeated.depth = list.depth;
  for (size_t i = 0; i < (size == 0 ? 0 : count); ++i) {
    repeated.items.insert(repeated.items.end(), list.items.begin(),
                          list.items.end());
  }
  return Value(std::move(repeated));
}

bool IsSequence(const Value& value) {
  return value.text() != nullptr ||
         (value.list() != nullptr && (value.list()->is_tuple() ||
                                      value.list()->kind == List::Kind::kList));
}

}  // namespace

absl::StatusOr<Value> Apply(BinaryOperator op, const Value& left,
                            const Value& right, Budget& budget, int line) {
  if (left.AsInteger() != nullptr && right.AsInteger() != nullptr) {
    return Integers(op, *left.AsInteger(), *right.AsInteger(), line);
  }
  const absl::optional<double> a = ToReal(left);
  const absl::optional<double> b = ToReal(right);
  if (a.has_value() && b.has_value()) return Reals(op, *a, *b, line);
  if (op == BinaryOperator::kAdd) return Add(left, right, budget, line);
  const absl::string_view spelling = kSpellings[static_cast<int>(op)];
  if (op == BinaryOperator::kModulo && left.text() != nullptr) {
    ASSIGN_OR_RETURN(Text text,
                     FormatPercent(*left.text(), right, budget, line));
    return Value(std::move(text));
  }
  if (op == BinaryOperator::kMultiply) {
    if (IsSequence(left) && right.AsInteger() != nullptr) {
      return Repeated(left, *right.AsInteger(), budget, line);
    }
    if (IsSequence(right) && left.AsInteger() != nullptr) {
      return Repeated(right, *left.AsInteger(), budget, line);
    }
  }
  return Mismatch(spelling, left, right, line);
}

absl::StatusOr<Value> Signed(bool minus, const Value& value, int line) {
  if (const int64_t* integer = value.AsInteger()) {
    if (!minus) return Value(*integer);
    return Integers(BinaryOperator::kSubtract, 0, *integer, line);
  }
  if (const double* real = value.real()) return Value(minus ? -*real : *real);
  if (const Undefined* undefined = value.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined"));
  }
  return Failure(line, absl::StrCat("a sign before a ", value.type_name()));
}

}  // namespace penstock::jinja
