// What an evaluator calls: functions, methods, macros, filters and tests.
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/evaluator.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/functions.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/methods.h"
#include "common/model/text/jinja/tests.h"

namespace penstock::jinja {

absl::StatusOr<Arguments> Evaluator::EvaluateAll(const CallArguments& arguments,
                                                 int line) {
  Arguments evaluated;
  for (const ExpressionPtr& argument : arguments.positional) {
    ASSIGN_OR_RETURN(evaluated.positional.emplace_back(), Evaluate(*argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument));
    evaluated.named.emplace_back(name, std::move(value));
  }
  RETURN_IF_ERROR(Unpack(arguments, evaluated, line));
  return evaluated;
}

absl::Status Evaluator::Unpack(const CallArguments& from, Arguments& into,
                               int line) {
  if (from.unpacked != nullptr) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*from.unpacked));
    ASSIGN_OR_RETURN(const Value::ListPtr items,
                     Iterated(value, budget_, line));
    into.positional.insert(into.positional.end(), items->items.begin(),
                           items->items.end());
  }
  if (from.unpacked_named == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Value value, Evaluate(*from.unpacked_named));
  if (value.dict() == nullptr) {
    return Failure(line, absl::StrCat("'**' before a ", value.type_name()));
  }
  for (const auto& [key, item] : value.dict()->items) {
    RETURN_IF_ERROR(budget_.TakeSteps(1, line));
    into.named.emplace_back(std::string(key.bytes()), item);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Evaluator::Node(const Call& node, int line) {
  return CallNode(node, nullptr, line);
}

absl::StatusOr<Value> Evaluator::CallWithCaller(const Expression& call,
                                                Closure caller) {
  RETURN_IF_ERROR(budget_.TakeSteps(1, call.line));
  return CallNode(std::get<Call>(call.node), &caller, call.line);
}

absl::StatusOr<Value> Evaluator::CallNode(const Call& node,
                                          const Closure* caller, int line) {
  if (const auto* method = std::get_if<Attribute>(&node.callee->node)) {
    return CallMethod(*method, node, caller, line);
  }
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*node.callee));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments, line));
  if (caller != nullptr) {
    arguments.named.emplace_back("caller", Value(*caller));
  }
  return CallValue(callee, std::move(arguments), line);
}

absl::StatusOr<Value> Evaluator::CallValue(const Value& callee,
                                           Arguments arguments, int line) {
  if (const Closure* closure = callee.closure()) {
    return bodies_.CallMacro(*closure, std::move(arguments), line);
  }
  if (const Function* function = callee.function()) {
    return function->builtin->call(
        {function->builtin->name, line, budget_, world_, std::move(arguments)});
  }
  if (const Loop* loop = callee.loop()) {
    const Invocation call = {"loop", line, budget_, world_,
                             std::move(arguments)};
    ASSIGN_OR_RETURN(const auto bound, call.Bind({"iterable"}, 1));
    if (loop->node == nullptr) {
      return call.Fail("is called, but the 'for' is not recursive");
    }
    return bodies_.CallLoop(*loop, *bound[0], line);
  }
  if (const Undefined* undefined = callee.undefined()) {
    // Functions of Jinja's own that are not built.
    for (const absl::string_view name :
         {"'cycler'", "'joiner'", "'lipsum'", "'strftime_now'"}) {
      if (undefined->what == name) {
        return Unknown(line, absl::StrCat("function ", undefined->what));
      }
    }
    return Failure(line, absl::StrCat(undefined->what,
                                      " is undefined, so it cannot be called"));
  }
  return Failure(line,
                 absl::StrCat("a ", callee.type_name(), " cannot be called"));
}

absl::StatusOr<Value> Evaluator::CallMethod(const Attribute& callee,
                                            const Call& call,
                                            const Closure* caller, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*callee.object));
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined, so it ",
                                      "has no '", callee.name, "'"));
  }
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(call.arguments, line));
  if (caller != nullptr) {
    arguments.named.emplace_back("caller", Value(*caller));
  }
  const Method method = FindMethod(object, callee.name);
  if (method != nullptr) {
    return method(object,
                  {callee.name, line, budget_, world_, std::move(arguments)});
  }
  if (ChangesData(object, callee.name)) {
    return Failure(line, absl::StrCat("method '", callee.name, "' of a ",
                                      object.type_name(), " would change it"));
  }
  if (HasPythonAttribute(object, callee.name)) {
    return Unknown(line, absl::StrCat("method '", callee.name, "' of a ",
                                      object.type_name()));
  }
  ASSIGN_OR_RETURN(const Value member,
                   AttributeOf(object, callee.name, budget_, line));
  if (member.undefined() != nullptr) {
    return Failure(line, absl::StrCat("a ", object.type_name(), " has no '",
                                      callee.name, "'"));
  }
  return CallValue(member, std::move(arguments), line);
}

absl::StatusOr<Value> Evaluator::Node(const FilterCall& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments, line));
  return node.filter->apply(
      object, {node.filter->name, line, budget_, world_, std::move(arguments)});
}

absl::StatusOr<Value> Evaluator::Apply(const AppliedFilter& filter,
                                       const Value& value) {
  ASSIGN_OR_RETURN(Arguments arguments,
                   EvaluateAll(filter.arguments, filter.line));
  return filter.filter->apply(value, {filter.filter->name, filter.line, budget_,
                                      world_, std::move(arguments)});
}

absl::StatusOr<Value> Evaluator::Node(const TestCall& node, int line) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateAll(node.arguments, line));
  ASSIGN_OR_RETURN(const bool holds,
                   node.test->holds(object, {node.test->name, line, budget_,
                                             world_, std::move(arguments)}));
  return Value(holds);
}

}  // namespace penstock::jinja
