#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/evaluator.h"

namespace penstock::jinja {

// Executes a parsed template with the given variables. Pure: the tree is not
// changed, and equal arguments give equal text. Errors as Evaluator's.
absl::StatusOr<Text> Render(const Body& body, Scopes::Variables globals,
                            const World& world, const Limits& limits);

}  // namespace penstock::jinja
