#include "common/model/text/jinja/parser.h"

#include <string>
#include <utility>
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
    if (tag == "if") return ParseIf(line);
    if (tag == "for") return ParseFor(line);
    if (tag == "set") return ParseSet(line);
    if (tag == "break") return ParseLoopControl({Break{}, line});
    if (tag == "continue") return ParseLoopControl({Continue{}, line});
    for (const absl::string_view stray :
         {"elif", "else", "endif", "endfor", "endset"}) {
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
    ASSIGN_OR_RETURN(node.target, expressions_.ParseTarget());
    if (!node.target.attribute.empty()) {
      return Unknown(line, "a loop over an attribute");
    }
    RETURN_IF_ERROR(tokens_.ExpectName("in"));
    ASSIGN_OR_RETURN(node.items,
                     expressions_.ParseTuple(Conditionals::kLeftAlone));
    if (tokens_.SkipName("if")) {
      ASSIGN_OR_RETURN(node.condition,
                       expressions_.Parse(Conditionals::kAllowed));
    }
    if (tokens_.IsName("recursive")) return Unknown(line, "a recursive loop");
    RETURN_IF_ERROR(EndTag());
    ++loops_;
    ASSIGN_OR_RETURN(node.body, ParseBody({"else", "endfor"}));
    --loops_;
    if (tokens_.SkipName("else")) {
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endfor"}));
    }
    RETURN_IF_ERROR(tokens_.ExpectName("endfor"));
    RETURN_IF_ERROR(EndTag());
    return Statement{std::move(node), line};
  }

  Result ParseSet(int line) {
    Set node;
    ASSIGN_OR_RETURN(node.target, expressions_.ParseTarget());
    if (tokens_.SkipOperator("=")) {
      ASSIGN_OR_RETURN(node.value,
                       expressions_.ParseTuple(Conditionals::kAllowed));
    } else {
      if (tokens_.IsOperator("|")) {
        return Unknown(line, "a filter on a 'set' block");
      }
      RETURN_IF_ERROR(EndTag());
      ASSIGN_OR_RETURN(node.body, ParseBody({"endset"}));
      RETURN_IF_ERROR(tokens_.ExpectName("endset"));
    }
    RETURN_IF_ERROR(EndTag());
    return Statement{std::move(node), line};
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
