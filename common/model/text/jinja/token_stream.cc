#include "common/model/text/jinja/token_stream.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"

namespace penstock::jinja {
namespace {

constexpr size_t kMaxQuoted = 64;

std::string Described(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "text";
    case TokenType::kBlockBegin:
      return "'{%'";
    case TokenType::kBlockEnd:
      return "the end of the tag";
    case TokenType::kVariableBegin:
      return "'{{'";
    case TokenType::kVariableEnd:
      return "the end of the expression";
    case TokenType::kEnd:
      return "the end of the template";
    case TokenType::kString:
      return "a string";
    default:
      return absl::StrCat(
          "'", absl::string_view(token.text).substr(0, kMaxQuoted), "'");
  }
}

}  // namespace

bool TokenStream::SkipOperator(absl::string_view op) {
  if (!IsOperator(op)) return false;
  ++at_;
  return true;
}

bool TokenStream::SkipName(absl::string_view name) {
  if (!IsName(name)) return false;
  ++at_;
  return true;
}

absl::Status TokenStream::Expect(TokenType type, absl::string_view what) {
  if (!Is(type)) return Unexpected(what);
  if (type != TokenType::kEnd) ++at_;
  return absl::OkStatus();
}

absl::Status TokenStream::ExpectOperator(absl::string_view op) {
  return SkipOperator(op) ? absl::OkStatus()
                          : Unexpected(absl::StrCat("'", op, "'"));
}

absl::Status TokenStream::ExpectName(absl::string_view name) {
  return SkipName(name) ? absl::OkStatus()
                        : Unexpected(absl::StrCat("'", name, "'"));
}

absl::StatusOr<std::string> TokenStream::TakeName(absl::string_view what) {
  if (!Is(TokenType::kName)) return Unexpected(what);
  return std::move(tokens_[at_++].text);
}

absl::Status TokenStream::Unexpected(absl::string_view what) const {
  return Failure(line(), absl::StrCat("expected ", what, ", found ",
                                      Described(current())));
}

}  // namespace penstock::jinja
