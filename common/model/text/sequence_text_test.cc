#include "common/model/text/sequence_text.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class SequenceTextTest : public ::testing::Test {
 protected:
  // What a reader sees of a whole sequence of bytes and special tokens, moved
  // through its serialised form before each token when `move` is set.
  SequenceText::Result Run(const std::vector<TokenId>& ids,
                           std::vector<std::string> stops, bool move) {
    SequenceText text(tokenizer_.get(), std::move(stops));
    std::string seen;
    for (const TokenId id : ids) {
      if (move) text = Moved(text);
      const SequenceText::Result step = text.Push(id);
      seen += step.text;
      if (step.stopped) return {seen, true};
    }
    if (move) text = Moved(text);
    const SequenceText::Result last = text.Flush();
    return {seen + last.text, last.stopped};
  }

  SequenceText Moved(const SequenceText& text) {
    const std::string bytes = text.Serialize();
    auto moved = SequenceText::Parse(bytes, tokenizer_.get());
    EXPECT_TRUE(moved.ok()) << moved.status();
    EXPECT_EQ(moved->Serialize(), bytes);
    return *std::move(moved);
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

TEST_F(SequenceTextTest, MovingBetweenAnyTwoTokensChangesNothing) {
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
    const SequenceText::Result stayed = Run(ids, stops, false);
    const SequenceText::Result moved = Run(ids, stops, true);
    ASSERT_EQ(stayed.text, moved.text);
    ASSERT_EQ(stayed.stopped, moved.stopped);
    for (const std::string& stop : stops) {
      ASSERT_EQ(stayed.text.find(stop), std::string::npos);
    }
  }
}

// The layout is a contract between hosts: these bytes are frozen.
TEST_F(SequenceTextTest, SerialisedFormIsFrozen) {
  SequenceText text(tokenizer_.get(), {"END", "x"});
  text.Push('E');
  text.Push(0xC3);
  const std::string bytes(
      "\x01\x01\x00\xC3\x02\x03\x00"
      "END\x01\x00x\x01\x00"
      "E",
      16);
  EXPECT_EQ(text.Serialize(), bytes);
}

TEST_F(SequenceTextTest, HostileBytesAreRefusedByField) {
  const auto error = [this](std::string bytes) {
    const auto text = SequenceText::Parse(bytes, tokenizer_.get());
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(text.status().message());
  };
  const auto of = [](std::initializer_list<int> bytes) {
    std::string text;
    for (const int byte : bytes) text.push_back(static_cast<char>(byte));
    return text;
  };
  EXPECT_THAT(error(""), HasSubstr("version is missing"));
  EXPECT_THAT(error(of({1})), HasSubstr("tail is missing"));
  EXPECT_THAT(error(of({1, 4, 0, 1, 1, 1, 1})), HasSubstr("tail has 4 bytes"));
  EXPECT_THAT(error(of({1, 2, 0, 0xC3})), HasSubstr("tail is cut short"));
  EXPECT_THAT(error(of({1, 1, 0, 'a', 0, 0, 0})), HasSubstr("tail is not"));
  EXPECT_THAT(error(of({1, 0, 0, 65})), HasSubstr("stop count is 65"));
  EXPECT_THAT(error(of({1, 0, 0, 1, 0, 0, 0, 0})),
              HasSubstr("stop[0] is empty"));
  EXPECT_THAT(error(of({1, 0, 0, 1, 0xFF, 0xFF})),
              HasSubstr("stop[0] has 65535 bytes"));
  EXPECT_THAT(error(of({1, 0, 0, 1, 1, 0, 0xFF, 0, 0})),
              HasSubstr("stop[0] is not UTF-8"));
  EXPECT_THAT(error(of({1, 0, 0, 0, 1, 0, 'x'})),
              HasSubstr("held text is not the start"));
  EXPECT_THAT(error(of({1, 0, 0, 1, 2, 0, 'x', 'y', 2, 0, 'x', 'y'})),
              HasSubstr("held text is not the start"));
  EXPECT_THAT(error(of({1, 0, 0, 1, 2, 0, 0xC3, 0xA9, 1, 0, 0xC3})),
              HasSubstr("held text is not UTF-8"));
  EXPECT_THAT(error(of({1, 0, 0, 0, 0, 0, 9})), HasSubstr("1 bytes over"));
  EXPECT_EQ(SequenceText::Parse(of({3}), tokenizer_.get()).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(SequenceTextTest, MutatedBytesNeverCrash) {
  SequenceText text(tokenizer_.get(), {"END", "\xC3\xA9\xC3\xA9"});
  text.Push(0xC3);
  text.Push(0xA9);
  text.Push(0xE2);
  const std::string bytes = text.Serialize();
  SeededRandom random(5);
  int accepted = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string mutated = bytes.substr(0, random.Below(bytes.size() + 1));
    for (uint64_t i = random.Below(3); i > 0 && !mutated.empty(); --i) {
      mutated[random.Below(mutated.size())] = static_cast<char>(random.Next());
    }
    if (random.Below(2) == 0) mutated += bytes.substr(mutated.size());
    auto parsed = SequenceText::Parse(mutated, tokenizer_.get());
    if (!parsed.ok()) continue;
    ++accepted;
    EXPECT_EQ(parsed->Serialize(), mutated);
    if (!parsed->Push('z').stopped) parsed->Flush();
  }
  EXPECT_GT(accepted, 0);
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
      auto moved = SequenceText::Parse(text.Serialize(), tokenizer.get());
      EXPECT_TRUE(moved.ok()) << moved.status();
      text = *std::move(moved);
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
