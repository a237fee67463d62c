#include "common/model/text/jinja/renderer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/macro_arguments.h"
#include "common/model/text/jinja/printer.h"

namespace penstock::jinja {
namespace {

// What follows a statement.
enum class Flow { kNext, kBreak, kContinue };

class Renderer : public BodyCaller {
 public:
  Renderer(Scopes::Variables globals, const World& world, const Limits& limits)
      : budget_(limits),
        scopes_(std::move(globals)),
        evaluator_(&scopes_, &budget_, &world, this) {}

  absl::StatusOr<Flow> Run(const Body& body, Text& out) {
    const Budget::Level level(budget_);
    for (const Statement& statement : body) {
      RETURN_IF_ERROR(level.Check(statement.line));
      RETURN_IF_ERROR(budget_.TakeSteps(1, statement.line));
      ASSIGN_OR_RETURN(const Flow flow, std::visit(
                                            [&](const auto& node) {
                                              return Execute(
                                                  node, statement.line, out);
                                            },
                                            statement.node));
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  absl::StatusOr<Value> CallMacro(const Closure& closure, Arguments arguments,
                                  int line) override {
    const Macro& macro = *closure.macro;
    ASSIGN_OR_RETURN(BoundArguments bound,
                     BindMacro(macro, std::move(arguments), budget_, line));
    const Scopes::Block block(scopes_, closure.scope);
    for (auto& [name, value] : bound.given) scopes_.Set(name, std::move(value));
    for (const Macro::Parameter* parameter : bound.missing) {
      scopes_.Set(
          parameter->name,
          Value(Undefined{absl::StrCat("parameter '", parameter->name, "'")}));
    }
    // Defaults may speak of the parameters before them.
    for (const Macro::Parameter* parameter : bound.missing) {
      if (parameter->otherwise == nullptr) continue;
      ASSIGN_OR_RETURN(Value value, evaluator_.Evaluate(*parameter->otherwise));
      scopes_.Set(parameter->name, std::move(value));
    }
    Text text;
    RETURN_IF_ERROR(Run(macro.body, text).status());
    return Value(std::move(text));
  }

  absl::StatusOr<Value> CallLoop(const Loop& loop, const Value& items,
                                 int line) override {
    const Budget::Level level(budget_);
    RETURN_IF_ERROR(level.Check(line));
    // As if the loop ran again where it stands.
    const Scopes::Block block(scopes_, loop.scope);
    Text text;
    RETURN_IF_ERROR(
        RunLoop(*loop.node, items, loop.depth0 + 1, line, text).status());
    return Value(std::move(text));
  }

 private:
  using Result = absl::StatusOr<Flow>;

  absl::Status Write(const Value& value, int line, Text& out) {
    ASSIGN_OR_RETURN(const Text text, Printed(value, budget_, line));
    RETURN_IF_ERROR(budget_.TakeOutput(text.size(), line));
    out.Append(text);
    return absl::OkStatus();
  }

  Result Execute(const Data& node, int line, Text& out) {
    RETURN_IF_ERROR(budget_.TakeOutput(node.text.size(), line));
    out.Append(node.text);
    return Flow::kNext;
  }

  Result Execute(const Output& node, int line, Text& out) {
    ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*node.value));
    RETURN_IF_ERROR(Write(value, line, out));
    return Flow::kNext;
  }

  Result Execute(const If& node, int, Text& out) {
    for (const auto& [condition, body] : node.branches) {
      ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*condition));
      if (value.Truthy()) return Run(body, out);
    }
    return Run(node.otherwise, out);
  }

  Result Execute(const For& node, int line, Text& out) {
    ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*node.items));
    return RunLoop(node, value, 0, line, out);
  }

  Result RunLoop(const For& node, const Value& value, int64_t depth0, int line,
                 Text& out) {
    ASSIGN_OR_RETURN(Value::ListPtr items, Iterated(value, budget_, line));
    if (node.condition != nullptr) {
      ASSIGN_OR_RETURN(items, Selected(node, *items, line));
    }
    auto loop = std::make_shared<Loop>();
    loop->items = items;
    loop->depth0 = depth0;
    if (node.recursive) {
      loop->node = &node;
      loop->scope = scopes_.current();
    }
    // As Jinja has it, `else` is for a loop that no round of ran to its end.
    bool finished = false;
    for (size_t i = 0; i < items->items.size(); ++i) {
      RETURN_IF_ERROR(budget_.TakeSteps(1, line));
      loop->index0 = static_cast<int64_t>(i);
      const Scopes::Block block(scopes_);
      scopes_.Set("loop", Value(loop));
      RETURN_IF_ERROR(evaluator_.Assign(node.target, items->items[i]));
      ASSIGN_OR_RETURN(const Flow flow, Run(node.body, out));
      finished = finished || flow == Flow::kNext;
      if (flow == Flow::kBreak) break;
    }
    if (finished) return Flow::kNext;
    const Scopes::Block block(scopes_);
    return Run(node.otherwise, out);
  }

  // The items for which the loop's condition holds.
  absl::StatusOr<Value::ListPtr> Selected(const For& node, const List& items,
                                          int line) {
    auto selected = std::make_shared<List>();
    RETURN_IF_ERROR(
        budget_.TakeBytes(items.items.size() * sizeof(Value), line));
    for (const Value& item : items.items) {
      RETURN_IF_ERROR(budget_.TakeSteps(1, line));
      const Scopes::Block block(scopes_);
      RETURN_IF_ERROR(evaluator_.Assign(node.target, item));
      ASSIGN_OR_RETURN(const Value keep, evaluator_.Evaluate(*node.condition));
      if (keep.Truthy()) selected->items.push_back(item);
    }
    return selected;
  }

  // Runs a body in a scope of its own and hands what it writes through filters.
  absl::StatusOr<Flow> Capture(const Body& body,
                               const std::vector<AppliedFilter>& filters,
                               Value& written) {
    const Scopes::Block block(scopes_);
    Text text;
    ASSIGN_OR_RETURN(const Flow flow, Run(body, text));
    if (flow != Flow::kNext) return flow;
    written = Value(std::move(text));
    for (const AppliedFilter& filter : filters) {
      ASSIGN_OR_RETURN(written, evaluator_.Apply(filter, written));
    }
    return flow;
  }

  Result Execute(const Set& node, int, Text&) {
    Value value;
    if (node.value != nullptr) {
      ASSIGN_OR_RETURN(value, evaluator_.Evaluate(*node.value));
    } else {
      ASSIGN_OR_RETURN(const Flow flow,
                       Capture(node.body, node.filters, value));
      if (flow != Flow::kNext) return flow;
    }
    RETURN_IF_ERROR(evaluator_.Assign(node.target, std::move(value)));
    return Flow::kNext;
  }

  Result Execute(const FilterBlock& node, int line, Text& out) {
    Value value;
    ASSIGN_OR_RETURN(const Flow flow, Capture(node.body, node.filters, value));
    if (flow != Flow::kNext) return flow;
    RETURN_IF_ERROR(Write(value, line, out));
    return Flow::kNext;
  }

  Result Execute(const MacroDefinition& node, int, Text&) {
    scopes_.Set(node.macro->name,
                Value(Closure{node.macro.get(), scopes_.current()}));
    return Flow::kNext;
  }

  Result Execute(const CallBlock& node, int line, Text& out) {
    ASSIGN_OR_RETURN(const Value value,
                     evaluator_.CallWithCaller(
                         *node.call, {node.body.get(), scopes_.current()}));
    RETURN_IF_ERROR(Write(value, line, out));
    return Flow::kNext;
  }

  Result Execute(const With& node, int, Text& out) {
    // Every value is evaluated before the first is visible.
    std::vector<Value> values;
    for (const auto& [target, expression] : node.values) {
      ASSIGN_OR_RETURN(values.emplace_back(), evaluator_.Evaluate(*expression));
    }
    const Scopes::Block block(scopes_);
    for (size_t i = 0; i < values.size(); ++i) {
      RETURN_IF_ERROR(
          evaluator_.Assign(node.values[i].first, std::move(values[i])));
    }
    return Run(node.body, out);
  }

  Result Execute(const Generation& node, int, Text& out) {
    const Scopes::Block block(scopes_);
    return Run(node.body, out);
  }

  Result Execute(const Break&, int, Text&) { return Flow::kBreak; }
  Result Execute(const Continue&, int, Text&) { return Flow::kContinue; }

  Budget budget_;
  Scopes scopes_;
  Evaluator evaluator_;
};

}  // namespace

absl::StatusOr<Text> Render(const Body& body, Scopes::Variables globals,
                            const World& world, const Limits& limits) {
  Renderer renderer(std::move(globals), world, limits);
  Text out;
  RETURN_IF_ERROR(renderer.Run(body, out).status());
  return out;
}

}  // namespace penstock::jinja
