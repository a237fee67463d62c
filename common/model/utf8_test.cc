#include "common/model/utf8.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// The encoding as its definition has it: arithmetic on scalar values, with no
// table of byte ranges.
std::string Encoded(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 + c / 64), byte(0x80 + c % 64)};
  if (c < 0x10000) {
    return {byte(0xE0 + c / 4096), byte(0x80 + c / 64 % 64),
            byte(0x80 + c % 64)};
  }
  return {byte(0xF0 + c / 262144), byte(0x80 + c / 4096 % 64),
          byte(0x80 + c / 64 % 64), byte(0x80 + c % 64)};
}

TEST(Utf8, EveryScalarValueRoundTrips) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = Encoded(c);
    ASSERT_EQ(EncodeUtf8(c), text) << c;
    ASSERT_TRUE(IsUtf8(text)) << c;
    ASSERT_EQ(DecodeUtf8(text), c);
    const Utf8Step step = StepUtf8(text + "x");
    ASSERT_EQ(step.kind, Utf8Step::Kind::kCharacter) << c;
    ASSERT_EQ(static_cast<size_t>(step.length), text.size());
  }
}

TEST(Utf8, SurrogatesOverlongFormsAndWhatLiesBeyondAreIllFormed) {
  for (uint32_t c = 0xD800; c <= 0xDFFF; ++c) {
    ASSERT_FALSE(IsUtf8(Encoded(c))) << c;
  }
  EXPECT_FALSE(IsUtf8("\xC0\x80"));
  EXPECT_FALSE(IsUtf8("\xC1\xBF"));
  EXPECT_FALSE(IsUtf8("\xE0\x9F\xBF"));
  EXPECT_FALSE(IsUtf8("\xF0\x8F\xBF\xBF"));
  EXPECT_FALSE(IsUtf8("\xF4\x90\x80\x80"));
  EXPECT_FALSE(IsUtf8("\xF5\x80\x80\x80"));
  EXPECT_FALSE(IsUtf8("\xFF"));
}

TEST(Utf8, FirstInvalidByteIsFoundAtEveryOffset) {
  for (size_t at = 0; at < 40; ++at) {
    std::string text(40, 'a');
    text[at] = '\x80';
    EXPECT_EQ(FindInvalidUtf8(text), at);
  }
  EXPECT_EQ(FindInvalidUtf8("caf\xC3"), 3u);
  EXPECT_EQ(FindInvalidUtf8("caf\xC3\xA9"), absl::string_view::npos);
  EXPECT_EQ(FindInvalidUtf8(""), absl::string_view::npos);
}

TEST(Utf8, ErrorNamesFieldAndOffset) {
  const absl::Status status = CheckUtf8("prompt", "ab\xF0\x9F");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "prompt is not UTF-8: byte 0xf0 at offset 2 of 4; send the text as "
            "UTF-8");
}

TEST(Utf8, MaximalSubparts) {
  // The examples of Unicode 15, table 3-8: E1 80 | E2 | F0 91 92 | F1 BF | 41.
  const std::string text = "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41";
  const int lengths[] = {2, 1, 3, 2, 1};
  size_t at = 0;
  for (const int length : lengths) {
    EXPECT_EQ(StepUtf8(absl::string_view(text).substr(at)).length, length);
    at += length;
  }
  EXPECT_EQ(StepUtf8("\xE1\x80").kind, Utf8Step::Kind::kUnfinished);
  EXPECT_EQ(StepUtf8("\xE1\x20").kind, Utf8Step::Kind::kIllFormed);
}

TEST(Utf8, CountsCharacters) {
  EXPECT_EQ(CountUtf8(""), 0u);
  EXPECT_EQ(CountUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), 4u);
  EXPECT_EQ(Utf8Length("a\xF0\x9F\x98\x80", 1), 4);
}

}  // namespace
}  // namespace penstock
