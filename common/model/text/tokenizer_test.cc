#include "common/model/text/tokenizer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

// Ids after the 256 bytes of SmallVocabulary() without merges.
constexpr TokenId kBos = 256;
constexpr TokenId kEos = 257;
constexpr TokenId kX = 258;
constexpr TokenId kXy = 259;
constexpr TokenId kTool = 260;

std::unique_ptr<Tokenizer> Create(const Vocabulary& vocabulary) {
  auto tokenizer = CreateTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

Ids Encode(const Tokenizer& tokenizer, absl::string_view text,
           SpecialTokens special = SpecialTokens::kPlain) {
  const auto ids = tokenizer.Encode(text, special);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return *ids;
}

Ids Bytes(absl::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

Ids Concat(std::initializer_list<Ids> parts) {
  Ids all;
  for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Tokenizer, EveryByteIsItsToken) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  for (TokenId id = 0; id < 256; ++id) {
    EXPECT_EQ(tokenizer->TokenBytes(id), std::string(1, static_cast<char>(id)));
    EXPECT_FALSE(tokenizer->IsSpecial(id));
  }
  const std::string text("nul \0 tab\t caf\xC3\xA9 \xF0\x9F\x98\x80", 21);
  EXPECT_EQ(Encode(*tokenizer, text), Bytes(text));
}

TEST(Tokenizer, SpecialTokensAreParsedOnlyWhenAsked) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_EQ(Encode(*tokenizer, "a<s>b</s>", SpecialTokens::kParse),
            Concat({Bytes("a"), {kBos}, Bytes("b"), {kEos}}));
  EXPECT_EQ(Encode(*tokenizer, "a<s>b</s>"), Bytes("a<s>b</s>"));
  EXPECT_EQ(tokenizer->TokenBytes(kEos), "</s>");
  EXPECT_TRUE(tokenizer->IsSpecial(kEos));
  EXPECT_THAT(tokenizer->stop_tokens(), ElementsAre(kEos));
  EXPECT_EQ(tokenizer->bos(), kBos);
  EXPECT_EQ(tokenizer->eos(), kEos);
}

TEST(Tokenizer, LongestSpecialTokenOfTheLeftmostPlaceWins) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_EQ(Encode(*tokenizer, "<|x|>y<|x|>z<|x<|x|", SpecialTokens::kParse),
            Concat({{kXy, kX}, Bytes("z<|x<|x|")}));
}

TEST(Tokenizer, UserDefinedTokensAreTextInEitherMode) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_FALSE(tokenizer->IsSpecial(kTool));
  EXPECT_EQ(Encode(*tokenizer, "<tool><s>"), Concat({{kTool}, Bytes("<s>")}));
  EXPECT_THAT(Encode(*tokenizer, "<tool><s>", SpecialTokens::kParse),
              ElementsAre(kTool, kBos));
}

TEST(Tokenizer, RunsAreOneTextWithSpecialTokensBarredFromSome) {
  const auto tokenizer = Create(SmallVocabulary({"a b", "b c"}));
  const TokenId ab = 256;
  const TokenId bos = 258;
  const auto encode = [&](std::vector<TextRun> runs) {
    return *tokenizer->EncodeRuns(runs);
  };
  constexpr auto kParse = SpecialTokens::kParse;
  constexpr auto kPlain = SpecialTokens::kPlain;
  // Ordinary tokens reach across.
  EXPECT_THAT(encode({{"a", kParse}, {"b", kPlain}}), ElementsAre(ab));
  // A special token does not, from either side.
  EXPECT_EQ(encode({{"<s", kParse}, {">", kPlain}}), Bytes("<s>"));
  EXPECT_EQ(encode({{"<s", kPlain}, {">", kParse}}), Bytes("<s>"));
  EXPECT_EQ(encode({{"<s>", kParse}, {"<s>", kPlain}, {"<s>", kParse}}),
            Concat({{bos}, Bytes("<s>"), {bos}}));
  // Adjacent runs of one mode are one; empty runs part nothing.
  EXPECT_THAT(encode({{"<", kParse}, {"s>", kParse}}), ElementsAre(bos));
  EXPECT_THAT(encode({{"a", kPlain}, {"", kParse}, {"b", kPlain}}),
              ElementsAre(ab));
  // A character may lie across runs.
  EXPECT_EQ(encode({{"\xC3", kParse}, {"\xA9", kPlain}}), Bytes("\xC3\xA9"));
  EXPECT_THAT(encode({}), ElementsAre());
}

TEST(Tokenizer, BytesWithoutATokenVanishBeforeTheMerges) {
  Vocabulary vocabulary = SmallVocabulary({"a b"});
  vocabulary.tokens[0x04] = "<unused>";
  vocabulary.kinds[0x04] = TokenKind::kUnused;
  // U+0004 is neither letter nor space: with the signs it is one piece.
  vocabulary.merges.push_back({'!', '?', 0x05});
  vocabulary.tokens[0x05] = "!?";
  const auto tokenizer = Create(vocabulary);
  EXPECT_THAT(Encode(*tokenizer, "!\x04?"), ElementsAre(0x05));
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefusedByOffset) {
  const auto tokenizer = Create(SmallVocabulary());
  const auto ids = tokenizer->Encode("abc\xFF", SpecialTokens::kParse);
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ids.status().message()),
              HasSubstr("byte 0xff at offset 3"));
}

TEST(Tokenizer, DecodeBytesChecksIds) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_EQ(*DecodeBytes(*tokenizer, Ids{'a', kBos, 0xC3}, false), "a<s>\xC3");
  EXPECT_EQ(*DecodeBytes(*tokenizer, Ids{'a', kBos, 0xC3}, true), "a\xC3");
  for (const TokenId bad : {-1, 261, 1 << 30}) {
    const auto text = DecodeBytes(*tokenizer, Ids{'a', bad}, false);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(text.status().message()), HasSubstr("ids[1]"));
  }
}

// A megabyte of what is worst for merges and patterns. What is asserted is the
// result; quadratic work would run into the test's time limit.
TEST(Tokenizer, LongRunsAreEncodedWhole) {
  const auto tokenizer = Create(SmallVocabulary(
      {"a a", "aa aa", "\u0120 \u0120", "\u0120\u0120 \u0120\u0120"}));
  constexpr size_t kLength = 1 << 20;
  EXPECT_EQ(Encode(*tokenizer, std::string(kLength, 'a')),
            Ids(kLength / 4, 257));
  EXPECT_EQ(Encode(*tokenizer, std::string(kLength, ' ')),
            Ids(kLength / 4, 259));
  EXPECT_EQ(Encode(*tokenizer, std::string(kLength, ' ') + "b"),
            Concat({Ids(kLength / 4 - 1, 259), {258, ' ', ' ', 'b'}}));
  EXPECT_EQ(Encode(*tokenizer, std::string(kLength, '7')), Ids(kLength, '7'));
  EXPECT_EQ(
      Encode(*tokenizer, std::string(kLength, '<'), SpecialTokens::kParse),
      Ids(kLength, '<'));
  std::string emoji;
  while (emoji.size() < kLength) emoji += "\xF0\x9F\x98\x80";
  EXPECT_EQ(Encode(*tokenizer, emoji), Bytes(emoji));
}

TEST(CreateTokenizer, NamesWhatItDoesNotKnow) {
  Vocabulary vocabulary = SmallVocabulary();
  vocabulary.model = "rwkv";
  auto tokenizer = CreateTokenizer(vocabulary);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("'rwkv'"));
  vocabulary.model = "gpt2";
  vocabulary.pre_tokenizer = "martian";
  tokenizer = CreateTokenizer(vocabulary);
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CreateTokenizer, RefusesAVocabularyThatContradictsItself) {
  const auto error = [](auto change) {
    Vocabulary vocabulary = SmallVocabulary();
    change(vocabulary);
    const auto tokenizer = CreateTokenizer(vocabulary);
    EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(tokenizer.status().message());
  };
  EXPECT_THAT(error([](Vocabulary& v) { v.tokens.clear(); }),
              HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(error([](Vocabulary& v) { v.kinds.pop_back(); }),
              HasSubstr("tokenizer.ggml.token_type"));
  EXPECT_THAT(error([](Vocabulary& v) { v.tokens[7] = "a"; }),
              HasSubstr("tokenizer.ggml.tokens[97]"));
  EXPECT_THAT(error([](Vocabulary& v) { v.tokens[7].assign(65537, 'a'); }),
              HasSubstr("tokenizer.ggml.tokens[7]"));
  EXPECT_THAT(error([](Vocabulary& v) { v.tokens[kX].assign(513, 'a'); }),
              HasSubstr("tokenizer.ggml.tokens[258]"));
  EXPECT_THAT(error([](Vocabulary& v) { v.bos = 261; }),
              HasSubstr("tokenizer.ggml.bos_token_id = 261"));
  EXPECT_THAT(error([](Vocabulary& v) { v.eos = -2; }),
              HasSubstr("tokenizer.ggml.eos_token_id"));
  EXPECT_THAT(error([](Vocabulary& v) { v.stop_tokens = {-1}; }),
              HasSubstr("stop token"));
  EXPECT_THAT(error([](Vocabulary& v) {
                v.add_bos = true;
                v.bos = -1;
              }),
              HasSubstr("tokenizer.ggml.add_bos_token"));
  EXPECT_THAT(error([](Vocabulary& v) {
                v.merges = {{'a', 'b', 999}};
              }),
              HasSubstr("tokenizer.ggml.merges[0]"));
}

TEST(TokenizerDeathTest, IdsOutsideTheVocabularyAreErrorsOfTheProgrammer) {
  const auto tokenizer = Create(SmallVocabulary());
  EXPECT_DEATH(tokenizer->TokenBytes(-1), "no token");
  EXPECT_DEATH(tokenizer->IsSpecial(261), "no token");
}

}  // namespace
}  // namespace penstock
