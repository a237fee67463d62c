#include "common/model/text/jinja/tests.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/operators.h"

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
bool IsSequence(const Value& value) {
  return value.text() != nullptr || value.list() != nullptr ||
         value.dict() != nullptr || value.undefined() != nullptr;
}
bool IsCallable(const Value& value) { return value.function() != nullptr; }

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
    {"boolean", Plain<IsBoolean>},
    {"callable", Plain<IsCallable>},
    {"defined", Plain<IsDefined>},
    {"divisibleby", IsDivisible},
    {"eq", Compared<Comparison::kEqual>},
    {"equalto", Compared<Comparison::kEqual>},
    {"even", IsEven},
    {"false", Plain<IsFalse>},
    {"float", Plain<IsFloat>},
    {"ge", Compared<Comparison::kGreaterOrEqual>},
    {"greaterthan", Compared<Comparison::kGreater>},
    {"gt", Compared<Comparison::kGreater>},
    {"in", Compared<Comparison::kIn>},
    {"integer", Plain<IsInteger>},
    {"iterable", Plain<IsSequence>},
    {"le", Compared<Comparison::kLessOrEqual>},
    {"lessthan", Compared<Comparison::kLess>},
    {"lt", Compared<Comparison::kLess>},
    {"mapping", Plain<IsMapping>},
    {"ne", Compared<Comparison::kNotEqual>},
    {"none", Plain<IsNone>},
    {"number", Plain<IsNumber>},
    {"odd", IsOdd},
    {"sequence", Plain<IsSequence>},
    {"string", Plain<IsString>},
    {"true", Plain<IsTrue>},
    {"undefined", Plain<IsUndefined>},
};

}  // namespace

const Test* FindTest(absl::string_view name) {
  for (const Test& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace penstock::jinja
