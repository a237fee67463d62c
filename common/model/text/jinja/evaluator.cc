#include "common/model/text/jinja/evaluator.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/functions.h"
#include "common/model/text/jinja/methods.h"
#include "common/model/text/jinja/operators.h"
#include "common/model/text/jinja/tests.h"

namespace penstock::jinja {
namespace {

absl::StatusOr<Value> LoopAttribute(const Loop& loop, const std::string& name,
                                    int line) {
  const auto length = static_cast<int64_t>(loop.items->items.size());
  const int64_t at = loop.index0;
  const auto item = [&](int64_t index) {
    if (index >= 0 && index < length) {
      return loop.items->items[static_cast<size_t>(index)];
    }
    return Value(Undefined{absl::StrCat("loop.", name)});
  };
  if (name == "index") return Value(at + 1);
  if (name == "index0") return Value(at);
  if (name == "first") return Value(at == 0);
  if (name == "last") return Value(at + 1 == length);
  if (name == "length") return Value(length);
  if (name == "revindex") return Value(length - at);
  if (name == "revindex0") return Value(length - at - 1);
  if (name == "previtem") return item(at - 1);
  if (name == "nextitem") return item(at + 1);
  // Of a loop that is not recursive.
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  return Unknown(line, absl::StrCat("'loop.", name, "'"));
}

}  // namespace

const Value* Scopes::Find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

absl::StatusOr<Value> Evaluator::Evaluate(const Expression& expression) {
  RETURN_IF_ERROR(budget_.TakeSteps(1, expression.line));
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
  list.tuple = node.tuple;
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
    if (dict.Find(key.text()->bytes()) != nullptr) {
      return Unknown(line, "a key that is given twice");
    }
    dict.items.emplace_back(*key.text(), std::move(value));
  }
  return MakeDict(std::move(dict), budget_, line);
}

absl::StatusOr<Value> Evaluator::AttributeOf(const Value& object,
                                             const std::string& name,
                                             int line) {
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined, so it ",
                                      "has no '", name, "'"));
  }
  if (const Namespace* space = object.space()) {
    const auto attribute = space->attributes.find(name);
    if (attribute != space->attributes.end()) return attribute->second;
  }
  if (const Loop* loop = object.loop()) return LoopAttribute(*loop, name, line);
  if (HasPythonAttribute(object, name)) {
    return Unknown(line, absl::StrCat("method '", name, "' without a call"));
  }
  if (const Dict* dict = object.dict()) {
    RETURN_IF_ERROR(
        budget_.TakeSteps(static_cast<int64_t>(dict->items.size()), line));
    if (const Value* item = dict->Find(name)) return *item;
  }
  return Value(Undefined{absl::StrCat("'", name, "'")});
}

absl::StatusOr<Value> Evaluator::Node(const Attribute& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  return AttributeOf(object, node.name, line);
}

absl::StatusOr<Value> Evaluator::Node(const Index& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(const Value index, Evaluate(*node.index));
  ASSIGN_OR_RETURN(Value item, Subscript(object, index, budget_, line));
  // Where there is no such item, Jinja tries an attribute of that name.
  if (item.undefined() != nullptr && index.text() != nullptr) {
    return AttributeOf(object, std::string(index.text()->bytes()), line);
  }
  return item;
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

absl::StatusOr<Arguments> Evaluator::EvaluateAll(
    const CallArguments& arguments) {
  Arguments evaluated;
  for (const ExpressionPtr& argument : arguments.positional) {
    ASSIGN_OR_RETURN(evaluated.positional.emplace_back(), Evaluate(*argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument));
    evaluated.named.emplace_back(name, std::move(value));
  }
  return evaluated;
}

absl::StatusOr<Value> Evaluator::Node(const Call& node, int line) {
  if (const auto* method = std::get_if<Attribute>(&node.callee->node)) {
    return CallMethod(*method, node, line);
  }
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*node.callee));
  if (const Function* function = callee.function()) {
    ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments));
    return function->builtin->call(
        {function->builtin->name, line, budget_, world_, std::move(arguments)});
  }
  if (const Undefined* undefined = callee.undefined()) {
    return Unknown(line, absl::StrCat("function ", undefined->what));
  }
  return Failure(line,
                 absl::StrCat("a ", callee.type_name(), " cannot be called"));
}

absl::StatusOr<Value> Evaluator::CallMethod(const Attribute& callee,
                                            const Call& call, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*callee.object));
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined, so it ",
                                      "has no '", callee.name, "'"));
  }
  const Method method = FindMethod(object, callee.name);
  if (method == nullptr) {
    return Unknown(line, absl::StrCat("method '", callee.name, "' of a ",
                                      object.type_name()));
  }
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(call.arguments));
  return method(object,
                {callee.name, line, budget_, world_, std::move(arguments)});
}

absl::StatusOr<Value> Evaluator::Node(const FilterCall& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments));
  return node.filter->apply(
      object, {node.filter->name, line, budget_, world_, std::move(arguments)});
}

absl::StatusOr<Value> Evaluator::Node(const TestCall& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments));
  ASSIGN_OR_RETURN(const bool holds,
                   node.test->holds(object, {node.test->name, line, budget_,
                                             world_, std::move(arguments)}));
  return Value(holds);
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
  return Apply(node.op, left, right, budget_, line);
}

absl::StatusOr<Value> Evaluator::Node(const Concatenation& node, int line) {
  Text text;
  for (const ExpressionPtr& part : node.parts) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*part));
    ASSIGN_OR_RETURN(const Text printed, Printed(value, line));
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
