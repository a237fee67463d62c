#include "common/model/text/unicode_class.h"

#include <utf8proc.h>

namespace penstock {
namespace {

uint16_t OfCategory(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpperOrTitle | kWordCharacter;
    case UTF8PROC_CATEGORY_LL:
      return kLower | kWordCharacter;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kCaseless | kWordCharacter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWordCharacter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWordCharacter;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWordCharacter;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kWhiteSpace;
    default:
      return 0;
  }
}

// Symbols that are alphabetic.
bool IsEnclosedLetter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

constexpr bool IsAsciiSpace(char32_t c) {
  return (c >= '\t' && c <= '\r') || c == ' ';
}

constexpr uint16_t ClassifyAscii(char32_t c) {
  if (c >= 'A' && c <= 'Z')
    return kUpperOrTitle | kAsciiLetter | kWordCharacter;
  if (c >= 'a' && c <= 'z') return kLower | kAsciiLetter | kWordCharacter;
  if (c >= '0' && c <= '9') return kNumber | kWordCharacter;
  if (c == '\r' || c == '\n') return kWhiteSpace | kLineBreak;
  if (IsAsciiSpace(c)) return kWhiteSpace;
  if (c < ' ' || c == 0x7F) return 0;
  if (c == '_') return kPunctuation | kWordCharacter | kAsciiMark;
  for (const char symbol : {'$', '+', '<', '=', '>', '^', '`', '|', '~'}) {
    if (c == static_cast<char32_t>(symbol)) return kSymbol | kAsciiMark;
  }
  return kPunctuation | kAsciiMark;
}

constexpr std::array<uint16_t, 128> MakeAsciiClasses() {
  std::array<uint16_t, 128> classes = {};
  for (char32_t c = 0; c < 128; ++c) classes[c] = ClassifyAscii(c);
  return classes;
}

}  // namespace

namespace unicode_internal {

constexpr std::array<uint16_t, 128> kAsciiClasses = MakeAsciiClasses();

ClassedCharacter ClassLong(absl::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t code_point = first & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    code_point = code_point << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  }
  return {ClassOf(code_point), static_cast<uint16_t>(length)};
}

}  // namespace unicode_internal

uint16_t ClassOf(char32_t code_point) {
  if (code_point < 128) return unicode_internal::kAsciiClasses[code_point];
  if (code_point == 0x85) return kWhiteSpace;
  const uint16_t classes =
      OfCategory(utf8proc_category(static_cast<utf8proc_int32_t>(code_point)));
  const bool joins = code_point == 0x200C || code_point == 0x200D;
  return joins || IsEnclosedLetter(code_point) ? classes | kWordCharacter
                                               : classes;
}

}  // namespace penstock
