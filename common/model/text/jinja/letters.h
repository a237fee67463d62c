#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace penstock::jinja {

// Letters as Python's str knows them. Texts are UTF-8.

enum class LetterCase { kUpper, kLower, kTitle };

// A character in that case; one letter may become up to three.
std::string InCase(char32_t c, LetterCase letter_case);

// Whether a capital sigma at `offset` of `text` is written as the final one in
// lower case: it ends a word.
bool IsFinalSigma(absl::string_view text, size_t offset);

// Whether there are letters of that case (upper or lower) and none of another.
bool HasCase(absl::string_view text, LetterCase letter_case);

bool IsPrintable(char32_t c);
bool IsAlphabetic(char32_t c);
bool IsDecimal(char32_t c);
// Letters, digits, and the numbers of other kinds.
bool IsAlphanumeric(char32_t c);
bool IsUpperCase(char32_t c);
bool IsLowerCase(char32_t c);
bool IsTitleCase(char32_t c);

}  // namespace penstock::jinja
