#include "common/model/text/sequence_text.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "common/model/text/small_vocabulary.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class SequenceTextTest : public ::testing::Test {
 protected:
  // What a reader sees of a whole sequence of bytes and special tokens; each
  // token goes to a copy of what took the one before, as an answer that forks
  // off another does.
  SequenceText::Result Run(const std::vector<TokenId>& ids,
                           std::vector<std::string> stops) {
    SequenceText text(tokenizer_.get(), std::move(stops));
    std::string seen;
    for (const TokenId id : ids) {
      SequenceText next = text;
      const SequenceText::Result step = next.Push(id);
      seen += step.text;
      if (step.stopped) return {seen, true};
      text = std::move(next);
    }
    const SequenceText::Result last = text.Flush();
    return {seen + last.text, last.stopped};
  }

  std::unique_ptr<Tokenizer> tokenizer_ = *CreateTokenizer(SmallVocabulary());
};

constexpr TokenId kEos = 257;

std::vector<TokenId> Bytes(absl::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

TEST_F(SequenceTextTest, AssemblesCharactersAndSkipsSpecialTokens) {
  SequenceText text(tokenizer_.get());
  EXPECT_EQ(text.Push('a').text, "a");
  EXPECT_EQ(text.Push(0xC3).text, "");
  EXPECT_EQ(text.Push(kEos).text, "");
  EXPECT_EQ(text.Push(0xA9).text, "\xC3\xA9");
  EXPECT_EQ(text.Push(0xE2).text, "");
  EXPECT_EQ(text.Flush().text, "\xEF\xBF\xBD");
}

TEST_F(SequenceTextTest, CutsStopStringsAcrossTokens) {
  SequenceText text(tokenizer_.get(), {"\n\nQ:"});
  std::string seen;
  SequenceText::Result step;
  for (const TokenId id : Bytes("4\n\nQ")) seen += text.Push(id).text;
  EXPECT_EQ(seen, "4");
  step = text.Push(':');
  EXPECT_TRUE(step.stopped);
  EXPECT_EQ(step.text, "");
}

TEST_F(SequenceTextTest, AReplacedTailMayStop) {
  SequenceText text(tokenizer_.get(), {"\xEF\xBF\xBD"});
  EXPECT_EQ(text.Push('a').text, "a");
  EXPECT_FALSE(text.Push(0xE2).stopped);
  const SequenceText::Result last = text.Flush();
  EXPECT_TRUE(last.stopped);
  EXPECT_EQ(last.text, "");
}

TEST_F(SequenceTextTest, NoTextIsLostAndNoStopStringLeaks) {
  SeededRandom random(4);
  const std::string alphabet = "ab\xC3\xA9\xE2\x82\xAC";
  for (int round = 0; round < 3000; ++round) {
    std::vector<TokenId> ids;
    const uint64_t length = random.Below(30);
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t pick = random.Below(alphabet.size() + 1);
      ids.push_back(pick == alphabet.size()
                        ? kEos
                        : static_cast<uint8_t>(alphabet[pick]));
    }
    std::vector<std::string> stops;
    if (random.Below(3) > 0) stops.push_back("aba");
    if (random.Below(3) > 0)
      stops.push_back(
          "\xC3\xA9"
          "b");
    const SequenceText::Result whole = Run(ids, {});
    const SequenceText::Result cut = Run(ids, stops);
    ASSERT_FALSE(whole.stopped);
    // Up to the stop string that ends first.
    ASSERT_EQ(whole.text.substr(0, cut.text.size()), cut.text);
    for (const std::string& stop : stops) {
      ASSERT_EQ(cut.text.find(stop), std::string::npos);
    }
    const bool any =
        std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
          return whole.text.find(stop) != std::string::npos;
        });
    ASSERT_EQ(cut.stopped, any);
    if (!cut.stopped) {
      ASSERT_EQ(cut.text, whole.text);
    }
  }
}

TEST_F(SequenceTextTest, WhatIsNotSearchedIsPartOfNoStopString) {
  SequenceText text(tokenizer_.get(), {"ab"});
  EXPECT_EQ(text.Push('a').text, "");  // held back
  EXPECT_EQ(text.PushUnsearched('b').text, "ab");
  EXPECT_EQ(text.PushUnsearched('a').text, "a");
  const SequenceText::Result next = text.Push('b');
  EXPECT_EQ(next.text, "b");
  EXPECT_FALSE(next.stopped);
  EXPECT_EQ(text.Push('a').text, "");
  EXPECT_TRUE(text.Push('b').stopped);
}

// A SentencePiece tokenizer: <unk>, <s>, "_a", "b", "_", byte 0xC3, byte 0xA9,
// and "__" as an added token, where "_" stands for U+2581.
std::unique_ptr<Tokenizer> SentencePiece() {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>",
                       "<s>",
                       "\u2581"
                       "a",
                       "b",
                       "\u2581",
                       "<0xC3>",
                       "<0xA9>",
                       "\u2581\u2581"};
  using K = TokenKind;
  vocabulary.kinds = {K::kUnknown, K::kControl, K::kNormal, K::kNormal,
                      K::kNormal,  K::kByte,    K::kByte,   K::kUserDefined};
  vocabulary.scores = {0, 0, -1, -2, -3, 0, 0, 0};
  vocabulary.escaped_spaces = true;
  vocabulary.strip_first_space = true;
  vocabulary.byte_fallback = true;
  auto tokenizer = CreateTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(SequenceTextStart, TheSpaceInFrontOfATextIsLeftOutOnce) {
  const auto tokenizer = SentencePiece();
  const auto run = [&](SequenceText::Start start, std::vector<TokenId> ids) {
    SequenceText text(tokenizer.get(), {}, start);
    std::string seen;
    for (const TokenId id : ids) {
      seen += text.Push(id).text;
    }
    return seen + text.Flush().text;
  };
  using Start = SequenceText::Start;
  EXPECT_EQ(run(Start::kBegins, {2, 3, 2}), "ab a");
  EXPECT_EQ(run(Start::kContinues, {2, 3, 2}), " ab a");
  EXPECT_EQ(run(Start::kBegins, {1, 4, 4, 3}), " b");
  EXPECT_EQ(run(Start::kBegins, {5, 6, 2}), "\u00E9 a");
  EXPECT_EQ(*DecodeBytes(*tokenizer, std::vector<TokenId>{1, 2, 3, 2}, true),
            "ab a");
  EXPECT_EQ(*DecodeBytes(*tokenizer, std::vector<TokenId>{4, 4, 5, 6}, true),
            " \u00E9");
  // Gemma's runs of spaces are added tokens.
  EXPECT_EQ(run(Start::kContinues, {3, 7, 3}), "b  b");
}

}  // namespace
}  // namespace penstock
