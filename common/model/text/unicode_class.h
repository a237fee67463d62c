#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {

// What pre-tokenizers ask about a character, as bits: its general category in
// the groups that their patterns speak of, and whether it is white space.
enum UnicodeClass : uint16_t {
  kUpperOrTitle = 1 << 0,  // Lu Lt
  kLower = 1 << 1,         // Ll
  kCaseless = 1 << 2,      // Lm Lo
  kMark = 1 << 3,          // M
  kNumber = 1 << 4,        // N
  kPunctuation = 1 << 5,   // P
  kSymbol = 1 << 6,        // S
  kWhiteSpace = 1 << 7,    // White_Space
  kLineBreak = 1 << 8,     // CR and LF
  kAsciiLetter = 1 << 9,
  kAsciiMark = 1 << 10,  // ASCII punctuation and symbols
  // What words are made of (UTS 18's \w): alphabetic, marks, Nd, Pc, joiners.
  kWordCharacter = 1 << 11,
  kLetter = kUpperOrTitle | kLower | kCaseless,
};

// Bits of UnicodeClass, by Unicode 15.
uint16_t ClassOf(char32_t code_point);

struct ClassedCharacter {
  uint16_t classes;
  uint16_t length;  // in bytes
};

namespace unicode_internal {
extern const std::array<uint16_t, 128> kAsciiClasses;
ClassedCharacter ClassLong(absl::string_view text, size_t at);
}  // namespace unicode_internal

// The character at byte `at`. Preconditions: `text` is UTF-8, `at` within and a
// boundary.
inline ClassedCharacter ClassAt(absl::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return {unicode_internal::kAsciiClasses[byte], 1};
  return unicode_internal::ClassLong(text, at);
}

}  // namespace penstock
