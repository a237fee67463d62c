#include "common/model/text/pre_tokenizer.h"

#include <string>
#include <vector>

#include "common/env/random.h"
#include "common/model/text/named_pre_tokenizers.h"
#include "common/model/text/word_patterns.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Split(const PreTokenizer& pre_tokenizer,
                               absl::string_view text) {
  PreTokenizer::Session session(pre_tokenizer);
  const absl::Status status = session.Split(text, /*at_start=*/true);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> pieces;
  for (const TextRange piece : session.pieces()) {
    pieces.emplace_back(
        session.text().substr(piece.begin, piece.end - piece.begin));
  }
  return pieces;
}

std::vector<std::string> Pieces(const std::vector<PreTokenizerStep>& steps,
                                absl::string_view text) {
  const absl::StatusOr<PreTokenizer> pre_tokenizer =
      PreTokenizer::Create(steps);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  return Split(*pre_tokenizer, text);
}

std::vector<std::string> Pieces(absl::string_view name,
                                absl::string_view text) {
  const auto named = FindPreTokenizer(name);
  EXPECT_TRUE(named.ok()) << named.status();
  return Pieces(named->steps, text);
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
  const auto unknown = FindPreTokenizer("martian");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("'martian'"));
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("default, gpt-2, "));
}

// Characters that patterns tell apart, by ones and by runs.
std::string RandomText(Random& random) {
  static constexpr const char* kPieces[] = {
      "a",      "Z",          "s",      "S",      "t",          "LL",
      "re",     "'",          "'s",     "'S",     "'\u017F",    "'ll",
      "'VE",    "'d",         " ",      "  ",     "\t",         "\n",
      "\r\n",   "\r",         "\n\n",   "\u00A0", "\u3000",     "\u2028",
      "\u0085", "\u180E",     "\u200B", "\x01",   "1",          "234",
      "5678",   "\u0663",     "\u2167", "\u00BD", ".",          ",",
      "!?",     "(",          "/",      "//",     "_",          "$",
      "+",      "<|",         "\u20AC", "\u2014", "\u3002",     "\u00E9",
      "\u0301", "\u0130",     "\u01C5", "\u02B0", "\u05D0",     "\u4E2D",
      "\u6587", "\u3042",     "\u30AB", "\uAC00", "\U0001F600", "\u0E01",
      "\u0E31", "\U00010400", "\u00DF", "\u1E9E", "hello",      "World",
      "ABC",    "camelCase",
  };
  std::string text;
  for (uint64_t i = 1 + random.Below(12); i > 0; --i) {
    text += kPieces[random.Below(std::size(kPieces))];
  }
  return text;
}

TEST(PreTokenizer, ScannersCutAsTheirPatternsDo) {
  SeededRandom random(11);
  for (const absl::string_view pattern : ScannedPatterns()) {
    PreTokenizerStep step;
    step.pattern = std::string(pattern);
    const auto scanner = PreTokenizer::Create({step});
    const auto regex = PreTokenizer::CreateWithoutScanners({step});
    ASSERT_TRUE(scanner.ok() && regex.ok()) << regex.status();
    ASSERT_NE(FindWordScanner(pattern), nullptr);
    for (int round = 0; round < 20000; ++round) {
      const std::string text = RandomText(random);
      ASSERT_EQ(Split(*scanner, text), Split(*regex, text))
          << pattern << " of '" << text << "'";
    }
  }
}

TEST(PreTokenizer, EveryNameCanBeMade) {
  for (const absl::string_view name : PreTokenizerNames()) {
    EXPECT_FALSE(Pieces(name, "It's 2024,\n 42 \u4E2D\u6587!").empty());
  }
}

TEST(PreTokenizer, FamiliesDifferInNumeralsAndCase) {
  EXPECT_THAT(
      Pieces("llama-bpe", "I'LL pay 12345.\n\n  ok"),
      ElementsAre("I", "'LL", " pay", " ", "123", "45", ".\n\n", " ", " ok"));
  EXPECT_THAT(Pieces("qwen2", "x=123\n"),
              ElementsAre("x", "=", "1", "2", "3", "\n"));
  EXPECT_THAT(Pieces("gpt-4o", "camelCase HTTPServer's"),
              ElementsAre("camel", "Case", " HTTPServer's"));
  EXPECT_THAT(Pieces("tekken", "camelCase it's"),
              ElementsAre("camel", "Case", " it", "'s"));
  EXPECT_THAT(Pieces("deepseek-v3", "a1234 \u4E2D\u6587.x !"),
              ElementsAre("a", "123", "4", " ", "\u4E2D\u6587", ".x", " !"));
}

TEST(PreTokenizer, BehavioursDoWithMatchesWhatTheySay) {
  using Behavior = PreTokenizerStep::Behavior;
  const auto cut = [](Behavior behavior, bool invert) {
    PreTokenizerStep step;
    step.pattern = "-";
    step.behavior = behavior;
    step.invert = invert;
    std::vector<std::string> by_regex = Pieces({step}, "the-final--countdown");
    step.kind = PreTokenizerStep::Kind::kLiteral;
    EXPECT_EQ(Pieces({step}, "the-final--countdown"), by_regex);
    return by_regex;
  };
  // The examples of the tokenizers library.
  EXPECT_THAT(cut(Behavior::kRemoved, false),
              ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(cut(Behavior::kIsolated, false),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(cut(Behavior::kMergedWithPrevious, false),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(cut(Behavior::kMergedWithNext, false),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(cut(Behavior::kContiguous, false),
              ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(cut(Behavior::kRemoved, true), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizer, MetaspaceMarksWords) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kMetaspace;
  step.pattern = "\u2581";
  step.prepend = PreTokenizerStep::Prepend::kFirst;
  EXPECT_THAT(Pieces({step}, "Hey  friend"), ElementsAre("\u2581Hey", "\u2581",
                                                         "\u2581"
                                                         "friend"));
  step.split = false;
  EXPECT_THAT(Pieces({step}, "Hey friend"), ElementsAre("\u2581Hey\u2581"
                                                        "friend"));
  EXPECT_THAT(Pieces({step}, " x"), ElementsAre("\u2581x"));
}

TEST(PreTokenizer, PatternsOfAnotherDialectAreRefused) {
  for (const char* pattern : {"[a&&b]", "[a[b]]", "\\h+", "[\\S]", "(?m:.)",
                              "(*UTF)a", "\\1", "(?<n>a)", "[]a]"}) {
    PreTokenizerStep step;
    step.pattern = pattern;
    const auto refused = PreTokenizer::Create({step});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented)
        << pattern;
  }
  PreTokenizerStep step;
  step.pattern = "(a";
  EXPECT_EQ(PreTokenizer::Create({step}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
