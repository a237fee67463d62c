#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// The variables that are visible, innermost scope last.
class Scopes {
 public:
  using Variables = std::map<std::string, Value>;

  explicit Scopes(Variables globals) { scopes_.push_back(std::move(globals)); }

  // Null when there is none.
  const Value* Find(const std::string& name) const;
  void Set(const std::string& name, Value value) {
    scopes_.back()[name] = std::move(value);
  }
  void Push() { scopes_.emplace_back(); }
  void Pop() { scopes_.pop_back(); }

 private:
  std::vector<Variables> scopes_;
};

// Evaluates expressions in the scopes of one rendering. Errors name the line:
// INVALID_ARGUMENT for what cannot be done with the values at hand,
// UNIMPLEMENTED for what this build does not know, RESOURCE_EXHAUSTED.
class Evaluator {
 public:
  // None is owned.
  Evaluator(Scopes* scopes, Budget* budget, const World* world)
      : scopes_(*scopes), budget_(*budget), world_(*world) {}

  absl::StatusOr<Value> Evaluate(const Expression& expression);
  absl::Status Assign(const Target& target, Value value);

 private:
  using Result = absl::StatusOr<Value>;

  Result Node(const Literal& node, int line);
  Result Node(const Name& node, int line);
  Result Node(const ListLiteral& node, int line);
  Result Node(const DictLiteral& node, int line);
  Result Node(const Attribute& node, int line);
  Result Node(const Index& node, int line);
  Result Node(const Slice& node, int line);
  Result Node(const Call& node, int line);
  Result Node(const FilterCall& node, int line);
  Result Node(const TestCall& node, int line);
  Result Node(const Not& node, int line);
  Result Node(const Negate& node, int line);
  Result Node(const Binary& node, int line);
  Result Node(const Concatenation& node, int line);
  Result Node(const Comparisons& node, int line);
  Result Node(const Logical& node, int line);
  Result Node(const Conditional& node, int line);

  Result AttributeOf(const Value& object, const std::string& name, int line);
  Result CallMethod(const Attribute& callee, const Call& call, int line);
  absl::StatusOr<Arguments> EvaluateAll(const CallArguments& arguments);

  Scopes& scopes_;
  Budget& budget_;
  const World& world_;
};

}  // namespace penstock::jinja
