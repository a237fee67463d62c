#include "common/model/text/pre_tokenizer.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Pieces(absl::string_view name,
                                absl::string_view text) {
  const absl::StatusOr<PreTokenizer> pre_tokenizer = PreTokenizer::Create(name);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  PreTokenizer::Session session(*pre_tokenizer);
  const auto pieces = session.Split(text);
  EXPECT_TRUE(pieces.ok()) << pieces.status();
  return {pieces->begin(), pieces->end()};
}

TEST(PreTokenizer, Gpt2Words) {
  EXPECT_THAT(Pieces("gpt-2", "Hello world, it's 2024!"),
              ElementsAre("Hello", " world", ",", " it", "'s", " 2024", "!"));
  EXPECT_THAT(Pieces("default", "a  b\n\n c \n"),
              ElementsAre("a", " ", " b", "\n\n", " c", " \n"));
  EXPECT_THAT(Pieces("gpt-2", ""), ElementsAre());
  EXPECT_THAT(Pieces("gpt-2", "we'll'LL"), ElementsAre("we", "'ll", "'", "LL"));
}

TEST(PreTokenizer, SmollmSetsEveryNumeralApart) {
  EXPECT_THAT(Pieces("smollm", "in 2024"),
              ElementsAre("in", " ", "2", "0", "2", "4"));
  // The words regex sees the end of text before a numeral.
  EXPECT_THAT(Pieces("smollm", "a  7b"), ElementsAre("a", "  ", "7", "b"));
  EXPECT_THAT(Pieces("smollm", "\u2167\u00BD"),
              ElementsAre("\u2167", "\u00BD"));
}

TEST(PreTokenizer, SpaceIsUnicodeWhiteSpace) {
  EXPECT_THAT(Pieces("gpt-2", "a\u00A0\u3000b"),
              ElementsAre("a", "\u00A0", "\u3000", "b"));
  // U+180E left White_Space with Unicode 6.3; U+200B was never in it.
  EXPECT_THAT(Pieces("gpt-2", "a\u180E\u200B"),
              ElementsAre("a", "\u180E\u200B"));
  EXPECT_THAT(Pieces("gpt-2", "a\x1C\u0085\u0085"),
              ElementsAre("a", "\x1C", "\u0085\u0085"));
}

TEST(PreTokenizer, UnknownNameSaysWhatIsKnown) {
  const auto unknown = PreTokenizer::Create("martian");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("'martian'"));
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("default, gpt-2, smollm"));
}

}  // namespace
}  // namespace penstock
