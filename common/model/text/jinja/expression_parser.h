#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/token_stream.h"

namespace penstock::jinja {

// Parses the expressions of a template by recursive descent. Does not own the
// stream. Errors: INVALID_ARGUMENT for what is no expression, UNIMPLEMENTED
// naming a filter, test or operator that is not known, RESOURCE_EXHAUSTED for
// nesting beyond kMaxHeight.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream* tokens) : tokens_(*tokens) {}

  enum class Conditionals { kAllowed, kLeftAlone };

  // One expression; with kLeftAlone an `if` after it is not its.
  absl::StatusOr<ExpressionPtr> Parse(Conditionals conditionals);
  // One expression, or a tuple of several with commas between.
  absl::StatusOr<ExpressionPtr> ParseTuple(Conditionals conditionals);
  // What `set` and `for` assign to.
  absl::StatusOr<Target> ParseTarget();

 private:
  using Result = absl::StatusOr<ExpressionPtr>;

  Result ParseConditional();
  Result ParseOr();
  Result ParseAnd();
  Result ParseNot();
  Result ParseComparisons();
  Result ParseSum();
  Result ParseConcatenation();
  Result ParseProduct();
  Result ParsePower();
  Result ParseUnary(bool with_filters);
  Result ParsePrimary();
  Result ParseName();
  Result ParseStrings();
  Result ParseParentheses();
  Result ParseList();
  Result ParseDict();
  Result ParsePostfix(ExpressionPtr object);
  Result ParseFiltersAndTests(ExpressionPtr object);
  Result ParseFilter(ExpressionPtr object);
  Result ParseTest(ExpressionPtr object);
  Result ParseAttribute(ExpressionPtr object);
  Result ParseSubscript(ExpressionPtr object);
  Result ParseCall(ExpressionPtr callee);
  absl::StatusOr<CallArguments> ParseArguments();
  absl::StatusOr<CallArguments> ParseTestArguments();

  bool AtTupleEnd() const;

  TokenStream& tokens_;
  int depth_ = 0;  // of the recursion
};

}  // namespace penstock::jinja
