#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/error.h"

namespace penstock::jinja {

inline int Height(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->height;
}

inline int Height(const CallArguments& arguments) {
  int height = 0;
  for (const ExpressionPtr& argument : arguments.positional) {
    height = std::max(height, Height(argument));
  }
  for (const auto& [name, argument] : arguments.named) {
    height = std::max(height, Height(argument));
  }
  height = std::max(height, Height(arguments.unpacked));
  return std::max(height, Height(arguments.unpacked_named));
}

// Wraps a node over children of which the highest is `below`.
template <typename Node>
absl::StatusOr<ExpressionPtr> Make(int line, int below, Node node) {
  if (below >= kMaxHeight) {
    return Exhausted(
        line, absl::StrCat("an expression nested deeper than ", kMaxHeight));
  }
  auto expression = std::make_unique<Expression>();
  expression->node = std::move(node);
  expression->line = line;
  expression->height = below + 1;
  return expression;
}

}  // namespace penstock::jinja
