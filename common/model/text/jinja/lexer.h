#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::jinja {

enum class TokenType {
  kData,  // text between tags, whitespace control applied
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,  // `text` is the decoded value
  kInteger,
  kFloat,
  kOperator,  // `text` is its spelling
  kEnd,
};

struct Token {
  TokenType type;
  int line;
  std::string text;
  int64_t integer = 0;
  double real = 0;
};

// Cuts a template into tokens, the last of which is kEnd. Newlines are
// normalised, one at the very end is dropped, and trim_blocks and lstrip_blocks
// are on, as the models' own library has it.
// INVALID_ARGUMENT for what is no Jinja, UNIMPLEMENTED for literals and tags
// that are not known, RESOURCE_EXHAUSTED for a source over kMaxSource.
absl::StatusOr<std::vector<Token>> Lex(absl::string_view source);

inline constexpr size_t kMaxSource = size_t{1} << 20;

}  // namespace penstock::jinja
