// What operators stand between: literals, names, brackets, and what follows an
// operand: attributes, subscripts, calls, filters and tests.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/expression_parser.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/make_expression.h"
#include "common/model/text/jinja/tests.h"

namespace penstock::jinja {

ExpressionParser::Result ExpressionParser::ParsePrimary() {
  const int line = tokens_.line();
  switch (tokens_.current().type) {
    case TokenType::kName:
      return ParseName();
    case TokenType::kString:
      return ParseStrings();
    case TokenType::kInteger:
      return Make(line, 0, Literal{Value(tokens_.Take().integer)});
    case TokenType::kFloat:
      return Make(line, 0, Literal{Value(tokens_.Take().real)});
    default:
      break;
  }
  if (tokens_.IsOperator("(")) return ParseParentheses();
  if (tokens_.IsOperator("[")) return ParseList();
  if (tokens_.IsOperator("{")) return ParseDict();
  return tokens_.Unexpected("an expression");
}

ExpressionParser::Result ExpressionParser::ParseName() {
  const Token token = tokens_.Take();
  if (token.text == "true" || token.text == "True") {
    return Make(token.line, 0, Literal{Value(true)});
  }
  if (token.text == "false" || token.text == "False") {
    return Make(token.line, 0, Literal{Value(false)});
  }
  if (token.text == "none" || token.text == "None") {
    return Make(token.line, 0, Literal{Value()});
  }
  if (token.text == "varargs") special_names_.varargs = true;
  if (token.text == "kwargs") special_names_.kwargs = true;
  if (token.text == "caller") special_names_.caller = true;
  return Make(token.line, 0, Name{token.text});
}

ExpressionParser::Result ExpressionParser::ParseStrings() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.Is(TokenType::kString)) text += tokens_.Take().text;
  return Make(line, 0, Literal{TextValue(text)});
}

ExpressionParser::Result ExpressionParser::ParseParentheses() {
  const int line = tokens_.Take().line;
  if (tokens_.SkipOperator(")")) return Make(line, 0, ListLiteral{{}, true});
  ASSIGN_OR_RETURN(ExpressionPtr inner, ParseTuple(Conditionals::kAllowed));
  RETURN_IF_ERROR(tokens_.ExpectOperator(")"));
  return inner;
}

ExpressionParser::Result ExpressionParser::ParseList() {
  const int line = tokens_.Take().line;
  ListLiteral node;
  int below = 0;
  while (!tokens_.IsOperator("]")) {
    if (!node.items.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    if (tokens_.IsOperator("]")) break;
    ASSIGN_OR_RETURN(ExpressionPtr item, Parse(Conditionals::kAllowed));
    below = std::max(below, Height(item));
    node.items.push_back(std::move(item));
  }
  RETURN_IF_ERROR(tokens_.ExpectOperator("]"));
  return Make(line, below, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseDict() {
  const int line = tokens_.Take().line;
  DictLiteral node;
  int below = 0;
  while (!tokens_.IsOperator("}")) {
    if (!node.items.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
    if (tokens_.IsOperator("}")) break;
    ASSIGN_OR_RETURN(ExpressionPtr key, Parse(Conditionals::kAllowed));
    RETURN_IF_ERROR(tokens_.ExpectOperator(":"));
    ASSIGN_OR_RETURN(ExpressionPtr value, Parse(Conditionals::kAllowed));
    below = std::max({below, Height(key), Height(value)});
    node.items.emplace_back(std::move(key), std::move(value));
  }
  RETURN_IF_ERROR(tokens_.ExpectOperator("}"));
  return Make(line, below, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParsePostfix(ExpressionPtr object) {
  for (;;) {
    if (tokens_.IsOperator(".")) {
      ASSIGN_OR_RETURN(object, ParseAttribute(std::move(object)));
    } else if (tokens_.IsOperator("[")) {
      ASSIGN_OR_RETURN(object, ParseSubscript(std::move(object)));
    } else if (tokens_.IsOperator("(")) {
      ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseFiltersAndTests(
    ExpressionPtr object) {
  for (;;) {
    if (tokens_.IsOperator("|")) {
      ASSIGN_OR_RETURN(object, ParseFilter(std::move(object)));
    } else if (tokens_.IsName("is")) {
      ASSIGN_OR_RETURN(object, ParseTest(std::move(object)));
    } else if (tokens_.IsOperator("(")) {
      ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

// A filter's name, which may have dots in it.
absl::StatusOr<const Filter*> ExpressionParser::TakeFilter() {
  const int line = tokens_.line();
  ASSIGN_OR_RETURN(std::string name, tokens_.TakeName("the name of a filter"));
  while (tokens_.SkipOperator(".")) {
    ASSIGN_OR_RETURN(const std::string part,
                     tokens_.TakeName("the name of a filter"));
    absl::StrAppend(&name, ".", part);
  }
  const Filter* filter = FindFilter(name);
  if (filter == nullptr) {
    return Unknown(line, absl::StrCat("filter '", name, "'"));
  }
  return filter;
}

absl::StatusOr<std::vector<AppliedFilter>> ExpressionParser::ParseFilters() {
  std::vector<AppliedFilter> filters;
  do {
    AppliedFilter& applied = filters.emplace_back();
    applied.line = tokens_.line();
    ASSIGN_OR_RETURN(applied.filter, TakeFilter());
    if (tokens_.IsOperator("(")) {
      ASSIGN_OR_RETURN(applied.arguments, ParseArguments());
    }
  } while (tokens_.SkipOperator("|"));
  return filters;
}

ExpressionParser::Result ExpressionParser::ParseFilter(ExpressionPtr object) {
  tokens_.Take();
  const int line = tokens_.line();
  FilterCall node;
  ASSIGN_OR_RETURN(node.filter, TakeFilter());
  if (tokens_.IsOperator("(")) {
    ASSIGN_OR_RETURN(node.arguments, ParseArguments());
  }
  const int below = std::max(Height(object), Height(node.arguments));
  node.object = std::move(object);
  return Make(line, below, std::move(node));
}

ExpressionParser::Result ExpressionParser::ParseTest(ExpressionPtr object) {
  const int line = tokens_.Take().line;
  const bool negated = tokens_.SkipName("not");
  ASSIGN_OR_RETURN(const std::string name,
                   tokens_.TakeName("the name of a test"));
  TestCall node;
  node.test = FindTest(name);
  if (node.test == nullptr) {
    return Unknown(line, absl::StrCat("test '", name, "'"));
  }
  ASSIGN_OR_RETURN(node.arguments, ParseTestArguments());
  const int below = std::max(Height(object), Height(node.arguments));
  node.object = std::move(object);
  ASSIGN_OR_RETURN(ExpressionPtr test, Make(line, below, std::move(node)));
  if (!negated) return test;
  return Make(line, below + 1, Not{std::move(test)});
}

absl::StatusOr<CallArguments> ExpressionParser::ParseTestArguments() {
  if (tokens_.IsOperator("(")) return ParseArguments();
  CallArguments arguments;
  const bool operand =
      tokens_.Is(TokenType::kName) || tokens_.Is(TokenType::kString) ||
      tokens_.Is(TokenType::kInteger) || tokens_.Is(TokenType::kFloat) ||
      tokens_.IsOperator("[") || tokens_.IsOperator("{");
  if (!operand || tokens_.IsName("else") || tokens_.IsName("or") ||
      tokens_.IsName("and")) {
    return arguments;
  }
  if (tokens_.IsName("is")) return tokens_.Unexpected("one test only");
  ASSIGN_OR_RETURN(ExpressionPtr argument, ParsePrimary());
  ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
  arguments.positional.push_back(std::move(argument));
  return arguments;
}

ExpressionParser::Result ExpressionParser::ParseAttribute(
    ExpressionPtr object) {
  const int line = tokens_.Take().line;
  const int below = Height(object);
  if (tokens_.Is(TokenType::kInteger)) {
    ASSIGN_OR_RETURN(ExpressionPtr index,
                     Make(line, 0, Literal{Value(tokens_.Take().integer)}));
    return Make(line, below, Index{std::move(object), std::move(index)});
  }
  ASSIGN_OR_RETURN(std::string name, tokens_.TakeName("a name or number"));
  return Make(line, below, Attribute{std::move(object), std::move(name)});
}

ExpressionParser::Result ExpressionParser::ParseSubscript(
    ExpressionPtr object) {
  const int line = tokens_.Take().line;
  const auto at_end = [this] {
    return tokens_.IsOperator("]") || tokens_.IsOperator(",") ||
           tokens_.IsOperator(":");
  };
  ExpressionPtr parts[3];
  int part = 0;
  do {
    if (part == 3) return tokens_.Unexpected("']'");
    if (!at_end()) {
      ASSIGN_OR_RETURN(parts[part], Parse(Conditionals::kAllowed));
    }
    ++part;
  } while (tokens_.SkipOperator(":"));
  if (tokens_.IsOperator(",")) return Unknown(line, "an index of several");
  if (part == 1 && parts[0] == nullptr) {
    return tokens_.Unexpected("an expression");
  }
  RETURN_IF_ERROR(tokens_.ExpectOperator("]"));
  const int below = std::max(
      {Height(object), Height(parts[0]), Height(parts[1]), Height(parts[2])});
  if (part == 1) {
    return Make(line, below, Index{std::move(object), std::move(parts[0])});
  }
  return Make(line, below,
              Slice{std::move(object), std::move(parts[0]), std::move(parts[1]),
                    std::move(parts[2])});
}

ExpressionParser::Result ExpressionParser::ParseCall(ExpressionPtr callee) {
  const int line = tokens_.line();
  Call node;
  ASSIGN_OR_RETURN(node.arguments, ParseArguments());
  const int below = std::max(Height(callee), Height(node.arguments));
  node.callee = std::move(callee);
  return Make(line, below, std::move(node));
}

absl::Status ExpressionParser::ParseUnpacked(CallArguments& arguments) {
  const bool named = tokens_.Take().text == "**";
  ExpressionPtr& into = named ? arguments.unpacked_named : arguments.unpacked;
  if (into != nullptr || arguments.unpacked_named != nullptr) {
    return tokens_.Unexpected("one unpacked argument at most");
  }
  ASSIGN_OR_RETURN(into, Parse(Conditionals::kAllowed));
  return absl::OkStatus();
}

absl::StatusOr<CallArguments> ExpressionParser::ParseArguments() {
  tokens_.Take();
  CallArguments arguments;
  bool comma = true;
  while (!tokens_.IsOperator(")")) {
    if (!comma) return tokens_.Unexpected("',' or ')'");
    if (tokens_.IsOperator("*") || tokens_.IsOperator("**")) {
      RETURN_IF_ERROR(ParseUnpacked(arguments));
      comma = tokens_.SkipOperator(",");
      continue;
    }
    const bool named = tokens_.Is(TokenType::kName) &&
                       tokens_.ahead().type == TokenType::kOperator &&
                       tokens_.ahead().text == "=";
    std::string name;
    if (arguments.unpacked_named != nullptr ||
        (!named && arguments.unpacked != nullptr)) {
      return tokens_.Unexpected("an end after an unpacked argument");
    }
    if (named) {
      name = tokens_.Take().text;
      tokens_.Take();
    } else if (!arguments.named.empty()) {
      return tokens_.Unexpected("a named argument");
    }
    ASSIGN_OR_RETURN(ExpressionPtr argument, Parse(Conditionals::kAllowed));
    if (named) {
      arguments.named.emplace_back(std::move(name), std::move(argument));
    } else {
      arguments.positional.push_back(std::move(argument));
    }
    comma = tokens_.SkipOperator(",");
  }
  tokens_.Take();
  return arguments;
}

}  // namespace penstock::jinja
