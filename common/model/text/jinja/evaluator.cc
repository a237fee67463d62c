#include "common/model/text/jinja/evaluator.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/functions.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/operators.h"
#include "common/model/text/jinja/printer.h"

namespace penstock::jinja {
absl::StatusOr<Value> Evaluator::Evaluate(const Expression& expression) {
  RETURN_IF_ERROR(budget_.TakeSteps(1, expression.line));
  const Budget::Level level(budget_);
  RETURN_IF_ERROR(level.Check(expression.line));
  return std::visit(
      [&](const auto& node) { return Node(node, expression.line); },
      expression.node);
}

absl::Status Evaluator::Assign(const Target& target, Value value) {
  if (!target.unpacked.empty()) {
    ASSIGN_OR_RETURN(const Value::ListPtr items,
                     Iterated(value, budget_, target.line));
    if (items->items.size() != target.unpacked.size()) {
      return Failure(target.line,
                     absl::StrCat(items->items.size(), " values for ",
                                  target.unpacked.size(), " names"));
    }
    for (size_t i = 0; i < target.unpacked.size(); ++i) {
      RETURN_IF_ERROR(Assign(target.unpacked[i], items->items[i]));
    }
    return absl::OkStatus();
  }
  if (target.attribute.empty()) {
    scopes_.Set(target.name, std::move(value));
    return absl::OkStatus();
  }
  const Value* object = scopes_.Find(target.name);
  if (object == nullptr || object->space() == nullptr) {
    return Failure(target.line,
                   absl::StrCat("'", target.name, "' is not a namespace"));
  }
  if (absl::StartsWith(target.attribute, "_")) {
    return Failure(target.line,
                   "a namespace takes no name that begins with '_'");
  }
  // Only data inside: a namespace within itself would never be freed.
  if (!value.is_data()) {
    return Unknown(target.line, absl::StrCat("a ", value.type_name(),
                                             " inside a namespace"));
  }
  object->space()->attributes[target.attribute] = std::move(value);
  return absl::OkStatus();
}

absl::StatusOr<Value> Evaluator::Node(const Literal& node, int) {
  return node.value;
}

absl::StatusOr<Value> Evaluator::Node(const Name& node, int) {
  if (const Value* value = scopes_.Find(node.name)) return *value;
  if (const BuiltinFunction* function = FindFunction(node.name, world_)) {
    return Value(Function{function});
  }
  return Value(Undefined{absl::StrCat("'", node.name, "'")});
}

absl::StatusOr<Value> Evaluator::Node(const ListLiteral& node, int line) {
  List list;
  if (node.tuple) list.kind = List::Kind::kTuple;
  for (const ExpressionPtr& item : node.items) {
    ASSIGN_OR_RETURN(list.items.emplace_back(), Evaluate(*item));
  }
  return MakeList(std::move(list), budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const DictLiteral& node, int line) {
  Dict dict;
  for (const auto& [key_node, value_node] : node.items) {
    ASSIGN_OR_RETURN(const Value key, Evaluate(*key_node));
    ASSIGN_OR_RETURN(Value value, Evaluate(*value_node));
    if (key.text() == nullptr) {
      return Unknown(
          line, absl::StrCat("a ", key.type_name(), " as the key of a dict"));
    }
    RETURN_IF_ERROR(
        budget_.TakeSteps(static_cast<int64_t>(dict.items.size()), line));
    dict.Put(*key.text(), std::move(value));
  }
  return MakeDict(std::move(dict), budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Attribute& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  return AttributeOf(object, node.name, budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Index& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(const Value index, Evaluate(*node.index));
  return ItemOf(object, index, budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Slice& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  Value values[3];
  const ExpressionPtr* const parts[3] = {&node.start, &node.stop, &node.step};
  for (int i = 0; i < 3; ++i) {
    if (*parts[i] == nullptr) continue;
    ASSIGN_OR_RETURN(values[i], Evaluate(**parts[i]));
  }
  return Sliced(object, {&values[0], &values[1], &values[2]}, budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Not& node, int) {
  ASSIGN_OR_RETURN(const Value operand, Evaluate(*node.operand));
  return Value(!operand.Truthy());
}

absl::StatusOr<Value> Evaluator::Node(const Negate& node, int line) {
  ASSIGN_OR_RETURN(const Value operand, Evaluate(*node.operand));
  return Signed(node.minus, operand, line);
}

absl::StatusOr<Value> Evaluator::Node(const Binary& node, int line) {
  ASSIGN_OR_RETURN(const Value left, Evaluate(*node.left));
  ASSIGN_OR_RETURN(const Value right, Evaluate(*node.right));
  return jinja::Apply(node.op, left, right, budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Concatenation& node, int line) {
  Text text;
  for (const ExpressionPtr& part : node.parts) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*part));
    ASSIGN_OR_RETURN(const Text printed, Printed(value, budget_, line));
    RETURN_IF_ERROR(budget_.TakeBytes(printed.size(), line));
    text.Append(printed);
  }
  return Value(std::move(text));
}

absl::StatusOr<Value> Evaluator::Node(const Comparisons& node, int line) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*node.first));
  for (const auto& [comparison, operand] : node.rest) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*operand));
    ASSIGN_OR_RETURN(const bool holds,
                     Compare(comparison, left, right, budget_, line));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

absl::StatusOr<Value> Evaluator::Node(const Logical& node, int) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*node.left));
  // The value of `and` and `or` is that of the operand that decides.
  if (left.Truthy() != node.conjunction) return left;
  return Evaluate(*node.right);
}

absl::StatusOr<Value> Evaluator::Node(const Conditional& node, int) {
  ASSIGN_OR_RETURN(const Value condition, Evaluate(*node.condition));
  if (condition.Truthy()) return Evaluate(*node.then);
  if (node.otherwise != nullptr) return Evaluate(*node.otherwise);
  return Value(Undefined{"an 'if' without an 'else'"});
}

}  // namespace penstock::jinja
