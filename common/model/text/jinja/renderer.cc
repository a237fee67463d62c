#include "common/model/text/jinja/renderer.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "common/base/status_macros.h"
#include "common/model/text/jinja/invocation.h"

namespace penstock::jinja {
namespace {

// What follows a statement.
enum class Flow { kNext, kBreak, kContinue };

class Renderer {
 public:
  Renderer(Scopes::Variables globals, const World& world, const Limits& limits)
      : budget_(limits),
        scopes_(std::move(globals)),
        evaluator_(&scopes_, &budget_, &world) {}

  absl::StatusOr<Flow> Run(const Body& body, Text& out) {
    for (const Statement& statement : body) {
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

 private:
  using Result = absl::StatusOr<Flow>;

  Result Execute(const Data& node, int line, Text& out) {
    RETURN_IF_ERROR(budget_.TakeOutput(node.text.size(), line));
    out.Append(node.text);
    return Flow::kNext;
  }

  Result Execute(const Output& node, int line, Text& out) {
    ASSIGN_OR_RETURN(const Value value, evaluator_.Evaluate(*node.value));
    ASSIGN_OR_RETURN(const Text text, Printed(value, line));
    RETURN_IF_ERROR(budget_.TakeOutput(text.size(), line));
    out.Append(text);
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
    ASSIGN_OR_RETURN(Value::ListPtr items, Iterated(value, budget_, line));
    if (node.condition != nullptr) {
      ASSIGN_OR_RETURN(items, Selected(node, *items, line));
    }
    if (items->items.empty()) return Run(node.otherwise, out);
    for (size_t i = 0; i < items->items.size(); ++i) {
      RETURN_IF_ERROR(budget_.TakeSteps(1, line));
      auto loop = std::make_shared<Loop>();
      loop->items = items;
      loop->index0 = static_cast<int64_t>(i);
      scopes_.Push();
      scopes_.Set("loop", Value(Value::LoopPtr(std::move(loop))));
      RETURN_IF_ERROR(evaluator_.Assign(node.target, items->items[i]));
      ASSIGN_OR_RETURN(const Flow flow, Run(node.body, out));
      scopes_.Pop();
      if (flow == Flow::kBreak) break;
    }
    return Flow::kNext;
  }

  // The items for which the loop's condition holds.
  absl::StatusOr<Value::ListPtr> Selected(const For& node, const List& items,
                                          int line) {
    auto selected = std::make_shared<List>();
    RETURN_IF_ERROR(
        budget_.TakeBytes(items.items.size() * sizeof(Value), line));
    for (const Value& item : items.items) {
      RETURN_IF_ERROR(budget_.TakeSteps(1, line));
      scopes_.Push();
      RETURN_IF_ERROR(evaluator_.Assign(node.target, item));
      ASSIGN_OR_RETURN(const Value keep, evaluator_.Evaluate(*node.condition));
      scopes_.Pop();
      if (keep.Truthy()) selected->items.push_back(item);
    }
    return selected;
  }

  Result Execute(const Set& node, int line, Text&) {
    if (node.value != nullptr) {
      ASSIGN_OR_RETURN(Value value, evaluator_.Evaluate(*node.value));
      RETURN_IF_ERROR(evaluator_.Assign(node.target, std::move(value)));
      return Flow::kNext;
    }
    Text text;
    scopes_.Push();
    ASSIGN_OR_RETURN(const Flow flow, Run(node.body, text));
    scopes_.Pop();
    if (flow != Flow::kNext) return flow;
    RETURN_IF_ERROR(evaluator_.Assign(node.target, Value(std::move(text))));
    return Flow::kNext;
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
