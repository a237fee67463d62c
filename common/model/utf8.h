#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

// What stands at the front of a byte string, by the well-formed byte sequences
// of Unicode 15, table 3-7.
struct Utf8Step {
  enum class Kind {
    kCharacter,   // `length` bytes are one character
    kUnfinished,  // all `length` bytes start a character that needs more
    kIllFormed,   // `length` bytes are a maximal ill-formed subpart
  };
  Kind kind;
  int length;  // 1 to 4
};

// Precondition: `bytes` is not empty.
Utf8Step StepUtf8(absl::string_view bytes);

// The offset of the first byte that is not part of a whole character, or npos.
size_t FindInvalidUtf8(absl::string_view text);

inline bool IsUtf8(absl::string_view text) {
  return FindInvalidUtf8(text) == absl::string_view::npos;
}

// INVALID_ARGUMENT names `field` and the byte offset.
absl::Status CheckUtf8(absl::string_view field, absl::string_view text);

// The code point of the whole character at the front of well-formed text.
char32_t DecodeUtf8(absl::string_view text);

// Characters of well-formed text.
size_t CountUtf8(absl::string_view text);

// Length in bytes of the character at `offset` of well-formed text.
int Utf8Length(absl::string_view text, size_t offset);

// Writes a scalar value (not a surrogate, at most 0x10FFFF) as 1 to 4 bytes.
std::string EncodeUtf8(char32_t code_point);

}  // namespace penstock
