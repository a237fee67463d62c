#include "common/model/text/jinja/expression_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/make_expression.h"

namespace penstock::jinja {
namespace {

// One expression within brackets takes about ten calls.
constexpr int kMaxRecursion = 100;

absl::optional<Comparison> ComparisonOf(const Token& token) {
  static constexpr std::pair<absl::string_view, Comparison> kSpellings[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
      {"<", Comparison::kLess},    {"<=", Comparison::kLessOrEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterOrEqual}};
  if (token.type != TokenType::kOperator) return absl::nullopt;
  for (const auto& [spelling, comparison] : kSpellings) {
    if (token.text == spelling) return comparison;
  }
  return absl::nullopt;
}

}  // namespace

bool ExpressionParser::AtTupleEnd() const {
  return tokens_.Is(TokenType::kVariableEnd) ||
         tokens_.Is(TokenType::kBlockEnd) || tokens_.IsOperator(")");
}

ExpressionParser::Result ExpressionParser::Parse(Conditionals conditionals) {
  if (depth_ >= kMaxRecursion) {
    return Exhausted(
        tokens_.line(),
        absl::StrCat("brackets nested deeper than ", kMaxRecursion));
  }
  ++depth_;
  Result result =
      conditionals == Conditionals::kAllowed ? ParseConditional() : ParseOr();
  --depth_;
  return result;
}

ExpressionParser::Result ExpressionParser::ParseTuple(
    Conditionals conditionals) {
  const int line = tokens_.line();
  ListLiteral tuple = {{}, true};
  int below = 0;
  bool comma = false;
  while (!AtTupleEnd()) {
    ASSIGN_OR_RETURN(ExpressionPtr item, Parse(conditionals));
    below = std::max(below, Height(item));
    tuple.items.push_back(std::move(item));
    if (!tokens_.SkipOperator(",")) break;
    comma = true;
  }
  if (tuple.items.empty()) return tokens_.Unexpected("an expression");
  if (!comma) return std::move(tuple.items[0]);
  return Make(line, below, std::move(tuple));
}

absl::StatusOr<Target> ExpressionParser::ParseTargetItem(Targets targets) {
  Target target;
  target.line = tokens_.line();
  if (tokens_.SkipOperator("(")) {
    if (depth_ >= kMaxRecursion) {
      return Exhausted(target.line, absl::StrCat("brackets nested deeper than ",
                                                 kMaxRecursion));
    }
    ++depth_;
    ASSIGN_OR_RETURN(target, ParseTarget(targets));
    --depth_;
    RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
    return target;
  }
  ASSIGN_OR_RETURN(target.name, tokens_.TakeName("a name to assign to"));
  for (const absl::string_view constant :
       {"true", "false", "none", "True", "False", "None"}) {
    if (target.name == constant) {
      return Failure(target.line,
                     absl::StrCat("'", constant, "' cannot be assigned to"));
    }
  }
  if (targets == Targets::kNamespaces && tokens_.SkipOperator(".")) {
    ASSIGN_OR_RETURN(target.attribute, tokens_.TakeName("a name"));
  }
  return target;
}

absl::StatusOr<Target> ExpressionParser::ParseTarget(Targets targets) {
  Target row;
  row.line = tokens_.line();
  bool comma = false;
  while (row.unpacked.empty() || tokens_.Is(TokenType::kName) ||
         tokens_.IsOperator("(")) {
    if (tokens_.IsName("in") && !row.unpacked.empty()) break;
    ASSIGN_OR_RETURN(Target target, ParseTargetItem(targets));
    row.unpacked.push_back(std::move(target));
    if (!tokens_.SkipOperator(",")) break;
    comma = true;
  }
  if (comma) return row;
  Target only = std::move(row.unpacked[0]);
  return only;
}

ExpressionParser::Result ExpressionParser::ParseConditional() {
  ASSIGN_OR_RETURN(ExpressionPtr then, ParseOr());
  while (tokens_.IsName("if")) {
    const int line = tokens_.line();
    tokens_.Take();
    Conditional node;
    ASSIGN_OR_RETURN(node.condition, ParseOr());
    if (tokens_.SkipName("else")) {
      ASSIGN_OR_RETURN(node.otherwise, Parse(Conditionals::kAllowed));
    }
    node.then = std::move(then);
    const int below = std::max(
        {Height(node.condition), Height(node.then), Height(node.otherwise)});
    ASSIGN_OR_RETURN(then, Make(line, below, std::move(node)));
  }
  return then;
}

ExpressionParser::Result ExpressionParser::ParseOr() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseAnd());
  while (tokens_.IsName("or")) {
    const int line = tokens_.Take().line;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseAnd());
    const int below = std::max(Height(left), Height(right));
    ASSIGN_OR_RETURN(
        left,
        Make(line, below, Logical{false, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseAnd() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseNot());
  while (tokens_.IsName("and")) {
    const int line = tokens_.Take().line;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseNot());
    const int below = std::max(Height(left), Height(right));
    ASSIGN_OR_RETURN(
        left,
        Make(line, below, Logical{true, std::move(left), std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseNot() {
  // Counted, not recursive: `not not not ...` may be long.
  const int line = tokens_.line();
  int count = 0;
  while (tokens_.SkipName("not")) ++count;
  ASSIGN_OR_RETURN(ExpressionPtr operand, ParseComparisons());
  for (; count > 0; --count) {
    const int below = Height(operand);
    ASSIGN_OR_RETURN(operand, Make(line, below, Not{std::move(operand)}));
  }
  return operand;
}

ExpressionParser::Result ExpressionParser::ParseComparisons() {
  const int line = tokens_.line();
  Comparisons node;
  ASSIGN_OR_RETURN(node.first, ParseSum());
  int below = Height(node.first);
  for (;;) {
    absl::optional<Comparison> comparison = ComparisonOf(tokens_.current());
    if (comparison.has_value()) {
      tokens_.Take();
    } else if (tokens_.SkipName("in")) {
      comparison = Comparison::kIn;
    } else if (tokens_.IsName("not") &&
               tokens_.ahead().type == TokenType::kName &&
               tokens_.ahead().text == "in") {
      tokens_.Take();
      tokens_.Take();
      comparison = Comparison::kNotIn;
    } else {
      break;
    }
    ASSIGN_OR_RETURN(ExpressionPtr operand, ParseSum());
    below = std::max(below, Height(operand));
    node.rest.emplace_back(*comparison, std::move(operand));
  }
  if (node.rest.empty()) return std::move(node.first);
  return Make(line, below, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseSum() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseConcatenation());
  while (tokens_.IsOperator("+") || tokens_.IsOperator("-")) {
    const Token op = tokens_.Take();
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseConcatenation());
    const int below = std::max(Height(left), Height(right));
    Binary node = {
        op.text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSubtract,
        std::move(left), std::move(right)};
    ASSIGN_OR_RETURN(left, Make(op.line, below, std::move(node)));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseConcatenation() {
  const int line = tokens_.line();
  Concatenation node;
  int below = 0;
  do {
    ASSIGN_OR_RETURN(ExpressionPtr part, ParseProduct());
    below = std::max(below, Height(part));
    node.parts.push_back(std::move(part));
  } while (tokens_.SkipOperator("~"));
  if (node.parts.size() == 1) return std::move(node.parts[0]);
  return Make(line, below, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseProduct() {
  static constexpr std::pair<absl::string_view, BinaryOperator> kSpellings[] = {
      {"*", BinaryOperator::kMultiply},
      {"/", BinaryOperator::kDivide},
      {"//", BinaryOperator::kFloor},
      {"%", BinaryOperator::kModulo}};
  ASSIGN_OR_RETURN(ExpressionPtr left, ParsePower());
  for (;;) {
    const auto* op = std::find_if(
        std::begin(kSpellings), std::end(kSpellings),
        [this](const auto& row) { return tokens_.IsOperator(row.first); });
    if (op == std::end(kSpellings)) return left;
    const int line = tokens_.Take().line;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParsePower());
    const int below = std::max(Height(left), Height(right));
    ASSIGN_OR_RETURN(
        left, Make(line, below,
                   Binary{op->second, std::move(left), std::move(right)}));
  }
}

ExpressionParser::Result ExpressionParser::ParsePower() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseUnary(true));
  while (tokens_.IsOperator("**")) {
    const int line = tokens_.Take().line;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseUnary(true));
    const int below = std::max(Height(left), Height(right));
    ASSIGN_OR_RETURN(left, Make(line, below,
                                Binary{BinaryOperator::kPower, std::move(left),
                                       std::move(right)}));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseUnary(bool with_filters) {
  std::vector<Token> signs;  // counted, not recursive
  while (tokens_.IsOperator("-") || tokens_.IsOperator("+")) {
    signs.push_back(tokens_.Take());
  }
  ASSIGN_OR_RETURN(ExpressionPtr node, ParsePrimary());
  ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  for (; !signs.empty(); signs.pop_back()) {
    const int below = Height(node);
    ASSIGN_OR_RETURN(node,
                     Make(signs.back().line, below,
                          Negate{std::move(node), signs.back().text == "-"}));
  }
  if (!with_filters) return node;
  return ParseFiltersAndTests(std::move(node));
}

}  // namespace penstock::jinja
