#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/lexer.h"

namespace penstock::jinja {

// A parser's place in the tokens of a template.
class TokenStream {
 public:
  // Precondition: the last token is kEnd.
  explicit TokenStream(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  int line() const { return current().line; }

  // kEnd is never passed.
  Token Take() {
    if (current().type == TokenType::kEnd) return current();
    return std::move(tokens_[at_++]);
  }

  bool Is(TokenType type) const { return current().type == type; }
  bool IsOperator(absl::string_view op) const {
    return Is(TokenType::kOperator) && current().text == op;
  }
  bool IsName(absl::string_view name) const {
    return Is(TokenType::kName) && current().text == name;
  }

  // Takes the token when it is that; says whether it was.
  bool SkipOperator(absl::string_view op);
  bool SkipName(absl::string_view name);

  // INVALID_ARGUMENT when the token is another.
  absl::Status Expect(TokenType type, absl::string_view what);
  absl::Status ExpectOperator(absl::string_view op);
  absl::Status ExpectName(absl::string_view name);
  absl::StatusOr<std::string> TakeName(absl::string_view what);

  // INVALID_ARGUMENT: the current token is not `what` was expected.
  absl::Status Unexpected(absl::string_view what) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace penstock::jinja
