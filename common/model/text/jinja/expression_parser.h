#pragma once

#include <vector>

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
  // What `set`, `for` and `with` assign to: with kNames names and rows of
  // names, with kNamespaces attributes too.
  enum class Targets { kNames, kNamespaces };
  absl::StatusOr<Target> ParseTarget(Targets targets);
  // `name(arguments)|...` as a filter block has it.
  absl::StatusOr<std::vector<AppliedFilter>> ParseFilters();

  // The special names of macros that were read since they were forgotten.
  struct SpecialNames {
    bool varargs = false;
    bool kwargs = false;
    bool caller = false;
  };
  SpecialNames& special_names() { return special_names_; }

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

  absl::StatusOr<Target> ParseTargetItem(Targets targets);
  absl::Status ParseUnpacked(CallArguments& arguments);
  absl::StatusOr<const struct Filter*> TakeFilter();
  bool AtTupleEnd() const;

  TokenStream& tokens_;
  int depth_ = 0;  // of the recursion
  SpecialNames special_names_;
};

}  // namespace penstock::jinja
