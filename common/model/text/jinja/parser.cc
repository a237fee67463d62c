#include "common/model/text/jinja/parser.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/expression_parser.h"
#include "common/model/text/jinja/lexer.h"
#include "common/model/text/jinja/token_stream.h"

namespace penstock::jinja {
namespace {

using Conditionals = ExpressionParser::Conditionals;
using Targets = ExpressionParser::Targets;

constexpr int kMaxNesting = 50;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)), expressions_(&tokens_) {}

  absl::StatusOr<Body> Run() {
    ASSIGN_OR_RETURN(Body body, ParseBody({}));
    RETURN_IF_ERROR(tokens_.Expect(TokenType::kEnd, "the end"));
    return body;
  }

 private:
  using Result = absl::StatusOr<Statement>;

  // Statements up to a tag that begins with one of `ends`, or to the end of the
  // template. The tag's "{%" is taken, its name is not.
  absl::StatusOr<Body> ParseBody(absl::Span<const absl::string_view> ends) {
    const int opened = tokens_.line();
    Body body;
    for (;;) {
      const int line = tokens_.line();
      if (tokens_.Is(TokenType::kEnd)) {
        if (ends.empty()) return body;
        return Failure(opened, absl::StrCat("tag has no '", ends.back(), "'"));
      }
      if (tokens_.Is(TokenType::kData)) {
        const Token data = tokens_.Take();
        body.push_back({Data{Text(data.text, false)}, data.line});
      } else if (tokens_.Is(TokenType::kVariableBegin)) {
        tokens_.Take();
        Output output;
        ASSIGN_OR_RETURN(output.value,
                         expressions_.ParseTuple(Conditionals::kAllowed));
        RETURN_IF_ERROR(tokens_.Expect(TokenType::kVariableEnd, "'}}'"));
        body.push_back({std::move(output), line});
      } else {
        RETURN_IF_ERROR(tokens_.Expect(TokenType::kBlockBegin, "'{%'"));
        if (tokens_.Is(TokenType::kName) &&
            absl::c_linear_search(ends, tokens_.current().text)) {
          return body;
        }
        ASSIGN_OR_RETURN(Statement statement, ParseStatement());
        body.push_back(std::move(statement));
      }
    }
  }

  Result ParseStatement() {
    const int line = tokens_.line();
    ASSIGN_OR_RETURN(const std::string tag, tokens_.TakeName("a tag"));
    if (depth_ >= kMaxNesting) {
      return Exhausted(line,
                       absl::StrCat("tags nested deeper than ", kMaxNesting));
    }
    ++depth_;
    Result statement = ParseTag(tag, line);
    --depth_;
    return statement;
  }

  Result ParseTag(const std::string& tag, int line) {
    struct Row {
      absl::string_view tag;
      Result (Parser::*parse)(int line);
    };
    static constexpr Row kRows[] = {
        {"break", &Parser::ParseBreak},
        {"call", &Parser::ParseCallBlock},
        {"continue", &Parser::ParseContinue},
        {"filter", &Parser::ParseFilterBlock},
        {"for", &Parser::ParseFor},
        {"generation", &Parser::ParseGeneration},
        {"if", &Parser::ParseIf},
        {"macro", &Parser::ParseMacro},
        {"print", &Parser::ParsePrint},
        {"set", &Parser::ParseSet},
        {"with", &Parser::ParseWith},
    };
    for (const Row& row : kRows) {
      if (tag == row.tag) return (this->*row.parse)(line);
    }
    for (const absl::string_view stray :
         {"elif", "else", "endcall", "endfilter", "endfor", "endgeneration",
          "endif", "endmacro", "endset", "endwith"}) {
      if (tag == stray) {
        return Failure(line, absl::StrCat("tag '", tag, "' has no beginning"));
      }
    }
    return Unknown(line, absl::StrCat("tag '", tag, "'"));
  }

  absl::Status EndTag() { return tokens_.Expect(TokenType::kBlockEnd, "'%}'"); }

  Result ParseIf(int line) {
    If node;
    do {
      ASSIGN_OR_RETURN(ExpressionPtr condition,
                       expressions_.ParseTuple(Conditionals::kLeftAlone));
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(Body body, ParseBody({"elif", "else", "endif"}));
      node.branches.emplace_back(std::move(condition), std::move(body));
    } while (tokens_.SkipName("elif"));
    if (tokens_.SkipName("else")) {
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endif"}));
    }
    RETURN_IF_ERROR(tokens_.ExpectName("endif"));
    RETURN_IF_ERROR(EndTag());
    return Statement{std::move(node), line};
  }

  Result ParseFor(int line) {
    For node;
    ASSIGN_OR_RETURN(node.target, expressions_.ParseTarget(Targets::kNames));
    RETURN_IF_ERROR(tokens_.ExpectName("in"));
    ASSIGN_OR_RETURN(node.items,
                     expressions_.ParseTuple(Conditionals::kLeftAlone));
    if (tokens_.SkipName("if")) {
      ASSIGN_OR_RETURN(node.condition,
                       expressions_.Parse(Conditionals::kAllowed));
    }
    node.recursive = tokens_.SkipName("recursive");
    RETURN_IF_ERROR(EndTag());
    const int outer = loops_;
    ++loops_;
    ASSIGN_OR_RETURN(node.body, ParseBody({"else", "endfor"}));
    // A recursive loop is a function: loops around it are out of reach.
    loops_ = node.recursive ? 0 : outer;
    if (tokens_.SkipName("else")) {
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endfor"}));
    }
    loops_ = outer;
    RETURN_IF_ERROR(tokens_.ExpectName("endfor"));
    RETURN_IF_ERROR(EndTag());
    return Statement{std::move(node), line};
  }

  Result ParseSet(int line) {
    Set node;
    ASSIGN_OR_RETURN(node.target,
                     expressions_.ParseTarget(Targets::kNamespaces));
    if (tokens_.SkipOperator("=")) {
      ASSIGN_OR_RETURN(node.value,
                       expressions_.ParseTuple(Conditionals::kAllowed));
      RETURN_IF_ERROR(EndTag());
      return Statement{std::move(node), line};
    }
    if (tokens_.SkipOperator("|")) {
      ASSIGN_OR_RETURN(node.filters, expressions_.ParseFilters());
    }
    ASSIGN_OR_RETURN(node.body, ParseBlock("endset"));
    return Statement{std::move(node), line};
  }

  // From the end of a tag to that of the tag that closes it.
  absl::StatusOr<Body> ParseBlock(absl::string_view end) {
    RETURN_IF_ERROR(EndTag());
    ASSIGN_OR_RETURN(Body body, ParseBody({end}));
    RETURN_IF_ERROR(tokens_.ExpectName(end));
    RETURN_IF_ERROR(EndTag());
    return body;
  }

  // The body of a function: loops around it are out of reach.
  absl::StatusOr<Body> ParseFunction(absl::string_view end) {
    const int outer = std::exchange(loops_, 0);
    ASSIGN_OR_RETURN(Body body, ParseBlock(end));
    loops_ = outer;
    return body;
  }

  absl::Status ParseParameters(Macro& macro) {
    RETURN_IF_ERROR(tokens_.ExpectOperator("("));
    while (!tokens_.IsOperator(")")) {
      if (!macro.parameters.empty()) {
        RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      }
      Macro::Parameter parameter;
      ASSIGN_OR_RETURN(parameter.name, tokens_.TakeName("a parameter"));
      if (tokens_.SkipOperator("=")) {
        ASSIGN_OR_RETURN(parameter.otherwise,
                         expressions_.Parse(Conditionals::kAllowed));
      } else if (!macro.parameters.empty() &&
                 macro.parameters.back().otherwise != nullptr) {
        return Failure(tokens_.line(),
                       "a parameter without a default after one with");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    return tokens_.ExpectOperator(")");
  }

  // The body of a macro whose parameters are read.
  absl::Status ParseMacroBody(absl::string_view end, int line, Macro& macro) {
    const ExpressionParser::SpecialNames outer =
        std::exchange(expressions_.special_names(), {});
    ASSIGN_OR_RETURN(macro.body, ParseFunction(end));
    ExpressionParser::SpecialNames& inner = expressions_.special_names();
    macro.takes_varargs = inner.varargs;
    macro.takes_kwargs = inner.kwargs;
    macro.takes_caller = inner.caller;
    for (const Macro::Parameter& parameter : macro.parameters) {
      if (parameter.name == "varargs") macro.takes_varargs = false;
      if (parameter.name == "kwargs") macro.takes_kwargs = false;
      if (parameter.name != "caller") continue;
      macro.has_caller_parameter = true;
      if (inner.caller && parameter.otherwise == nullptr) {
        return Failure(line, "parameter 'caller' needs a default");
      }
    }
    inner.varargs |= outer.varargs;
    inner.kwargs |= outer.kwargs;
    inner.caller |= outer.caller;
    return absl::OkStatus();
  }

  Result ParseMacro(int line) {
    auto macro = std::make_unique<Macro>();
    ASSIGN_OR_RETURN(macro->name, tokens_.TakeName("the name of a macro"));
    RETURN_IF_ERROR(ParseParameters(*macro));
    RETURN_IF_ERROR(ParseMacroBody("endmacro", line, *macro));
    return Statement{MacroDefinition{std::move(macro)}, line};
  }

  Result ParseCallBlock(int line) {
    CallBlock node;
    node.body = std::make_unique<Macro>();
    node.body->name = "caller";
    if (tokens_.IsOperator("(")) {
      RETURN_IF_ERROR(ParseParameters(*node.body));
    }
    ASSIGN_OR_RETURN(node.call, expressions_.Parse(Conditionals::kAllowed));
    if (!std::holds_alternative<Call>(node.call->node)) {
      return Failure(line, "tag 'call' needs a call");
    }
    RETURN_IF_ERROR(ParseMacroBody("endcall", line, *node.body));
    return Statement{std::move(node), line};
  }

  Result ParseFilterBlock(int line) {
    FilterBlock node;
    ASSIGN_OR_RETURN(node.filters, expressions_.ParseFilters());
    ASSIGN_OR_RETURN(node.body, ParseBlock("endfilter"));
    return Statement{std::move(node), line};
  }

  Result ParseWith(int line) {
    With node;
    while (!tokens_.Is(TokenType::kBlockEnd)) {
      if (!node.values.empty()) RETURN_IF_ERROR(tokens_.ExpectOperator(","));
      auto& [target, value] = node.values.emplace_back();
      ASSIGN_OR_RETURN(target, expressions_.ParseTarget(Targets::kNames));
      RETURN_IF_ERROR(tokens_.ExpectOperator("="));
      ASSIGN_OR_RETURN(value, expressions_.Parse(Conditionals::kAllowed));
    }
    ASSIGN_OR_RETURN(node.body, ParseBlock("endwith"));
    return Statement{std::move(node), line};
  }

  Result ParseGeneration(int line) {
    Generation node;
    ASSIGN_OR_RETURN(node.body, ParseFunction("endgeneration"));
    return Statement{std::move(node), line};
  }

  Result ParsePrint(int line) {
    Output node;
    ASSIGN_OR_RETURN(node.value,
                     expressions_.ParseTuple(Conditionals::kAllowed));
    RETURN_IF_ERROR(EndTag());
    return Statement{std::move(node), line};
  }

  Result ParseBreak(int line) { return ParseLoopControl({Break{}, line}); }
  Result ParseContinue(int line) {
    return ParseLoopControl({Continue{}, line});
  }

  Result ParseLoopControl(Statement statement) {
    if (loops_ == 0) {
      return Failure(statement.line, "'break' or 'continue' outside a loop");
    }
    RETURN_IF_ERROR(EndTag());
    return statement;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

absl::StatusOr<Body> Parse(absl::string_view source) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace penstock::jinja
