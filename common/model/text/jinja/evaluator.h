#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/scopes.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// What runs bodies for expressions that call them.
class BodyCaller {
 public:
  virtual ~BodyCaller() = default;
  virtual absl::StatusOr<Value> CallMacro(const Closure& closure,
                                          Arguments arguments, int line) = 0;
  // `loop(items)` of a recursive loop.
  virtual absl::StatusOr<Value> CallLoop(const Loop& loop, const Value& items,
                                         int line) = 0;
};

// Evaluates expressions in the scopes of one rendering. Errors name the line:
// INVALID_ARGUMENT for what cannot be done with the values at hand,
// UNIMPLEMENTED for what this build does not know, RESOURCE_EXHAUSTED.
class Evaluator {
 public:
  // None is owned.
  Evaluator(Scopes* scopes, Budget* budget, const World* world,
            BodyCaller* bodies)
      : scopes_(*scopes), budget_(*budget), world_(*world), bodies_(*bodies) {}

  absl::StatusOr<Value> Evaluate(const Expression& expression);
  // Evaluates `call`, which is a Call, with one more argument: the caller.
  absl::StatusOr<Value> CallWithCaller(const Expression& call, Closure caller);
  absl::Status Assign(const Target& target, Value value);
  absl::StatusOr<Value> Apply(const AppliedFilter& filter, const Value& value);

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

  // `caller` is null outside a call block.
  Result CallNode(const Call& node, const Closure* caller, int line);
  Result CallValue(const Value& callee, Arguments arguments, int line);
  Result CallMethod(const Attribute& callee, const Call& call,
                    const Closure* caller, int line);
  absl::StatusOr<Arguments> EvaluateAll(const CallArguments& arguments,
                                        int line);
  absl::Status Unpack(const CallArguments& from, Arguments& into, int line);

  Scopes& scopes_;
  Budget& budget_;
  const World& world_;
  BodyCaller& bodies_;
};

}  // namespace penstock::jinja
