#include "common/model/text/unicode_class.h"

#include <string>

#include "common/model/text/regex.h"
#include "common/model/utf8.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Every bit of every character of the planes in use, by PCRE2's own tables.
// Characters that PCRE2's Unicode does not have yet are left out.
void ExpectBits(int bits, const std::string& pattern) {
  const auto regex = Regex::Compile(pattern);
  const auto assigned = Regex::Compile(R"([^\p{Cn}])");
  ASSERT_TRUE(regex.ok()) << regex.status();
  Regex::Matcher matcher(**regex);
  Regex::Matcher is_assigned(**assigned);
  for (char32_t c = 0; c < 0x20000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = EncodeUtf8(c);
    if (!is_assigned.Find(text, 0)->has_value()) continue;
    const bool expected = matcher.Find(text, 0)->has_value();
    ASSERT_EQ((ClassAt(text, 0).classes & bits) != 0, expected)
        << pattern << " of U+" << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ(ClassOf(c), ClassAt(text, 0).classes);
    ASSERT_EQ(ClassAt(text, 0).length, text.size());
  }
}

TEST(UnicodeClass, BitsAreTheGeneralCategories) {
  ExpectBits(kUpperOrTitle, R"([\p{Lu}\p{Lt}])");
  ExpectBits(kLower, R"(\p{Ll})");
  ExpectBits(kCaseless, R"([\p{Lm}\p{Lo}])");
  ExpectBits(kLetter, R"(\p{L})");
  ExpectBits(kMark, R"(\p{M})");
  ExpectBits(kNumber, R"(\p{N})");
  ExpectBits(kPunctuation, R"(\p{P})");
  ExpectBits(kSymbol, R"(\p{S})");
}

TEST(UnicodeClass, BitsOfSpacesAndAscii) {
  ExpectBits(kWhiteSpace, R"(\s)");
  ExpectBits(kLineBreak, R"([\r\n])");
  ExpectBits(kAsciiLetter, "[A-Za-z]");
  ExpectBits(kAsciiMark, R"([!-/:-@\[-`{-~])");
}

TEST(UnicodeClass, WordsAreOfLettersMarksDigitsAndJoiners) {
  for (const char32_t c : {U'a', U'Z', U'_', U'7', U'\u00E9', U'\u0301',
                           U'\u4E2D', U'\u2167', U'\u200D', U'\u24B6'}) {
    EXPECT_TRUE(ClassOf(c) & kWordCharacter) << static_cast<uint32_t>(c);
  }
  for (const char32_t c :
       {U' ', U'-', U'$', U'\u00BD', U'\u200B', U'\u2014', U'\U0001F600'}) {
    EXPECT_FALSE(ClassOf(c) & kWordCharacter) << static_cast<uint32_t>(c);
  }
}

}  // namespace
}  // namespace penstock
