#include "common/model/text/jinja/tests.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/letters.h"
#include "common/model/text/jinja/operators.h"
#include "common/model/text/jinja/printer.h"

namespace penstock::jinja {
namespace {

// Makes a test of a predicate on the value alone.
template <bool (*kPredicate)(const Value&)>
absl::StatusOr<bool> Plain(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return kPredicate(value);
}

bool IsDefined(const Value& value) { return value.undefined() == nullptr; }
bool IsUndefined(const Value& value) { return value.undefined() != nullptr; }
bool IsNone(const Value& value) { return value.is_none(); }
bool IsBoolean(const Value& value) { return value.boolean() != nullptr; }
bool IsTrue(const Value& value) {
  return value.boolean() != nullptr && *value.boolean();
}
bool IsFalse(const Value& value) {
  return value.boolean() != nullptr && !*value.boolean();
}
bool IsInteger(const Value& value) { return value.integer() != nullptr; }
bool IsFloat(const Value& value) { return value.real() != nullptr; }
bool IsNumber(const Value& value) {
  return value.AsInteger() != nullptr || value.real() != nullptr;
}
bool IsString(const Value& value) { return value.text() != nullptr; }
bool IsMapping(const Value& value) { return value.dict() != nullptr; }
// Jinja's Undefined behaves as an empty sequence here.
bool IsIterable(const Value& value) {
  return value.text() != nullptr || value.list() != nullptr ||
         value.dict() != nullptr || value.undefined() != nullptr ||
         value.loop() != nullptr;
}
bool IsSequence(const Value& value) {
  const List* list = value.list();
  return IsIterable(value) && value.loop() == nullptr &&
         (list == nullptr || list->has_places());
}
bool IsCallable(const Value& value) {
  // Undefined can be called, to fail.
  return value.function() != nullptr || value.closure() != nullptr ||
         value.loop() != nullptr || value.undefined() != nullptr;
}
bool IsEscaped(const Value&) { return false; }

template <LetterCase kCase>
absl::StatusOr<bool> IsInCase(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  ASSIGN_OR_RETURN(const Text text, Printed(value, call.budget, call.line));
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  return HasCase(text.bytes(), kCase);
}

// Identity, where values show it: of singletons, and of other types.
absl::StatusOr<bool> IsSame(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"other"}, 1));
  const Value& other = *bound[0];
  if (value.type_name() != other.type_name()) return false;
  if (value.is_none()) return true;
  if (value.boolean() != nullptr) return *value.boolean() == *other.boolean();
  return Unknown(call.line, absl::StrCat("sameas of a ", value.type_name()));
}

template <bool kFilter>
absl::StatusOr<bool> IsNamed(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  if (value.text() == nullptr) return false;
  const absl::string_view name = value.text()->bytes();
  return kFilter ? FindFilter(name) != nullptr : FindTest(name) != nullptr;
}

template <Comparison kComparison>
absl::StatusOr<bool> Compared(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"other"}, 1));
  return Compare(kComparison, value, *bound[0], call.budget, call.line);
}

// value % divisor == remainder
absl::StatusOr<bool> Leaves(const Value& value, const Value& divisor,
                            int64_t remainder, const Invocation& call) {
  ASSIGN_OR_RETURN(const Value left, Apply(BinaryOperator::kModulo, value,
                                           divisor, call.budget, call.line));
  return Equal(left, Value(remainder), call.budget, call.line);
}

absl::StatusOr<bool> IsEven(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return Leaves(value, Value(int64_t{2}), 0, call);
}

absl::StatusOr<bool> IsOdd(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return Leaves(value, Value(int64_t{2}), 1, call);
}

absl::StatusOr<bool> IsDivisible(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"num"}, 1));
  return Leaves(value, *bound[0], 0, call);
}

constexpr Test kTests[] = {
    {"!=", Compared<Comparison::kNotEqual>},
    {"<", Compared<Comparison::kLess>},
    {"<=", Compared<Comparison::kLessOrEqual>},
    {"==", Compared<Comparison::kEqual>},
    {">", Compared<Comparison::kGreater>},
    {">=", Compared<Comparison::kGreaterOrEqual>},
    {"boolean", Plain<IsBoolean>},
    {"callable", Plain<IsCallable>},
    {"defined", Plain<IsDefined>},
    {"divisibleby", IsDivisible},
    {"eq", Compared<Comparison::kEqual>},
    {"equalto", Compared<Comparison::kEqual>},
    {"escaped", Plain<IsEscaped>},
    {"even", IsEven},
    {"false", Plain<IsFalse>},
    {"filter", IsNamed<true>},
    {"float", Plain<IsFloat>},
    {"ge", Compared<Comparison::kGreaterOrEqual>},
    {"greaterthan", Compared<Comparison::kGreater>},
    {"gt", Compared<Comparison::kGreater>},
    {"in", Compared<Comparison::kIn>},
    {"integer", Plain<IsInteger>},
    {"iterable", Plain<IsIterable>},
    {"le", Compared<Comparison::kLessOrEqual>},
    {"lower", IsInCase<LetterCase::kLower>},
    {"lessthan", Compared<Comparison::kLess>},
    {"lt", Compared<Comparison::kLess>},
    {"mapping", Plain<IsMapping>},
    {"ne", Compared<Comparison::kNotEqual>},
    {"none", Plain<IsNone>},
    {"number", Plain<IsNumber>},
    {"odd", IsOdd},
    {"sameas", IsSame},
    {"sequence", Plain<IsSequence>},
    {"string", Plain<IsString>},
    {"test", IsNamed<false>},
    {"true", Plain<IsTrue>},
    {"undefined", Plain<IsUndefined>},
    {"upper", IsInCase<LetterCase::kUpper>},
};

}  // namespace

const Test* FindTest(absl::string_view name) {
  for (const Test& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace penstock::jinja
