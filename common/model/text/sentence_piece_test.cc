// SentencePiece's two models, added tokens and normalised text, on vocabularies
// small enough to work out by hand.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/random.h"
#include "common/model/text/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

struct Piece {
  const char* text;
  double score;
  TokenKind kind = TokenKind::kNormal;
};

Vocabulary Make(const char* model, const std::vector<Piece>& pieces) {
  Vocabulary vocabulary;
  vocabulary.model = model;
  for (const Piece& piece : pieces) {
    vocabulary.tokens.push_back(piece.text);
    vocabulary.scores.push_back(piece.score);
    vocabulary.kinds.push_back(piece.kind);
  }
  vocabulary.unknown = 0;
  vocabulary.use_unknown = true;
  vocabulary.fuse_unknown = true;
  vocabulary.byte_fallback = true;
  return vocabulary;
}

Ids Encode(const Vocabulary& vocabulary, absl::string_view text,
           SpecialTokens special = SpecialTokens::kParse) {
  const auto tokenizer = CreateTokenizer(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode(text, special);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return *ids;
}

constexpr Piece kUnk = {"<unk>", 0, TokenKind::kUnknown};

TEST(SentencePieceBpe, TheBestScoreIsMergedFirst) {
  Vocabulary vocabulary = Make("llama", {kUnk,
                                         {"a", -9},
                                         {"b", -9},
                                         {"c", -9},
                                         {"ab", -3},
                                         {"bc", -2},
                                         {"abc", -4}});
  // "bc" goes before "ab", and "abc" is then "a" and "bc".
  EXPECT_THAT(Encode(vocabulary, "abc"), ElementsAre(6));
  vocabulary.tokens[6] = "abd";
  EXPECT_THAT(Encode(vocabulary, "abc"), ElementsAre(1, 5));
  vocabulary.scores[4] = -1;
  EXPECT_THAT(Encode(vocabulary, "abc"), ElementsAre(4, 3));
}

TEST(SentencePieceBpe, StrangersBecomeBytesAfterTheMerges) {
  const Vocabulary vocabulary = Make("llama", {kUnk,
                                               {"a", -9},
                                               {"<0xC3>", 0, TokenKind::kByte},
                                               {"<0xA9>", 0, TokenKind::kByte},
                                               {"\u00E9"
                                                "a",
                                                -1}});
  EXPECT_THAT(Encode(vocabulary, "\u00E9"), ElementsAre(2, 3));
  // A token may be made of a character that is none.
  EXPECT_THAT(Encode(vocabulary,
                     "a\u00E9"
                     "a"),
              ElementsAre(1, 4));
  // Bytes without a token are unknown, neighbours together.
  EXPECT_THAT(Encode(vocabulary, "a\u00E8\u00E8\u00E9"),
              ElementsAre(1, 0, 2, 3));
  // Text cannot spell a byte token.
  EXPECT_THAT(Encode(vocabulary, "<0xC3>", SpecialTokens::kPlain),
              ElementsAre(0));
}

// What is sought is any cut into tokens; tried all, the best sum wins.
double BestSum(const std::vector<Piece>& pieces, absl::string_view text) {
  if (text.empty()) return 0;
  double best = -1e9;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const absl::string_view piece = pieces[i].text;
    if (text.substr(0, piece.size()) != piece) continue;
    best = std::max(
        best, pieces[i].score + BestSum(pieces, text.substr(piece.size())));
  }
  return best;
}

TEST(Unigram, FindsTheCutOfTheBestSum) {
  const std::vector<Piece> pieces = {
      kUnk,       {"a", -2.5},   {"b", -3.25},   {"c", -2},  {"ab", -4.5},
      {"bc", -5}, {"aa", -4.75}, {"abc", -7.25}, {"ca", -3}, {"bca", -6.5}};
  const Vocabulary vocabulary = Make("t5", pieces);
  SeededRandom random(2);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (uint64_t i = random.Below(9); i > 0; --i) {
      text.push_back(static_cast<char>('a' + random.Below(3)));
    }
    double sum = 0;
    std::string joined;
    for (const TokenId id : Encode(vocabulary, text)) {
      sum += pieces[id].score;
      joined += pieces[id].text;
    }
    EXPECT_EQ(joined, text);
    EXPECT_EQ(sum, BestSum(pieces, text)) << text;
  }
}

TEST(Unigram, UnknownCharactersAreOneTokenOrBytes) {
  Vocabulary vocabulary = Make("t5", {kUnk,
                                      {"a", -1},
                                      {"<0xC3>", 0, TokenKind::kByte},
                                      {"<0xA9>", 0, TokenKind::kByte}});
  EXPECT_THAT(Encode(vocabulary, "a\u00E9xya"), ElementsAre(1, 2, 3, 0, 1));
  vocabulary.use_unknown = false;
  EXPECT_THAT(Encode(vocabulary, "axya"), ElementsAre(1, 1));
}

TEST(Unigram, AMegabyteOfOneLetterIsEncodedWhole) {
  const Vocabulary vocabulary = Make("t5", {kUnk, {"a", -1}, {"aaaa", -1.5}});
  constexpr size_t kLength = 1 << 20;
  EXPECT_EQ(Encode(vocabulary, std::string(kLength, 'a')), Ids(kLength / 4, 2));
}

TEST(SentencePieceBpe, AMegabyteIsEncodedWhole) {
  const Vocabulary vocabulary = Make("llama", {kUnk,
                                               {"a", -9},
                                               {"aa", -1},
                                               {"aaaa", -2},
                                               {"\u2581", -9},
                                               {"\u2581\u2581", -3}});
  constexpr size_t kLength = 1 << 18;
  EXPECT_EQ(Encode(vocabulary, std::string(kLength, 'a')), Ids(kLength / 4, 3));
  std::string spaces;
  for (size_t i = 0; i < kLength; ++i) spaces += "\u2581";
  EXPECT_EQ(Encode(vocabulary, spaces), Ids(kLength / 2, 5));
}

// Ids 1 and 2 are "<x>" and "word".
Vocabulary Added(const TokenMatching& x) {
  Vocabulary vocabulary = Make("llama", {kUnk,
                                         {"<x>", 0, TokenKind::kControl},
                                         {"word", 0, TokenKind::kUserDefined},
                                         {" ", -1},
                                         {"a", -1}});
  vocabulary.matchings = {x};
  return vocabulary;
}

TEST(AddedTokens, TakeWhiteSpaceAlongOnTheSidesAskedFor) {
  TokenMatching x;
  x.id = 1;
  EXPECT_THAT(Encode(Added(x), "a <x>  a"), ElementsAre(4, 3, 1, 3, 3, 4));
  x.left_strip = true;
  EXPECT_THAT(Encode(Added(x), "a <x>  a"), ElementsAre(4, 1, 3, 3, 4));
  x.right_strip = true;
  EXPECT_THAT(Encode(Added(x), "a <x>  <x> a"), ElementsAre(4, 1, 1, 4));
  EXPECT_THAT(Encode(Added(x), " <x>  "), ElementsAre(1));
}

TEST(AddedTokens, SingleWordsStandApart) {
  TokenMatching word;
  word.id = 2;
  word.single_word = true;
  const Vocabulary vocabulary = Added(word);
  EXPECT_THAT(Encode(vocabulary, "a word"), ElementsAre(4, 3, 2));
  EXPECT_THAT(Encode(vocabulary, "aword worda word"),
              ElementsAre(4, 0, 3, 0, 4, 3, 2));
}

TEST(AddedTokens, NormalisedOnesAreSoughtInNormalisedText) {
  TokenMatching x;
  x.id = 1;
  x.normalized = true;
  Vocabulary vocabulary = Added(x);
  NormalizerStep lower;
  lower.kind = NormalizerStep::Kind::kLowercase;
  vocabulary.normalizers = {lower};
  EXPECT_THAT(Encode(vocabulary, "A<X>a"), ElementsAre(4, 1, 4));
  EXPECT_THAT(Encode(vocabulary, "A<X>a", SpecialTokens::kPlain),
              ElementsAre(4, 0, 4));
  // Text of a message never becomes one, nor does what lies across it.
  const auto tokenizer = *CreateTokenizer(vocabulary);
  const auto runs = [&](std::vector<TextRun> given) {
    return *tokenizer->EncodeRuns(given);
  };
  constexpr auto kParse = SpecialTokens::kParse;
  constexpr auto kPlain = SpecialTokens::kPlain;
  EXPECT_THAT(runs({{"a<", kParse}, {"X>A", kPlain}}), ElementsAre(4, 0, 4));
  EXPECT_THAT(runs({{"a<x>", kParse}, {"<x>", kPlain}}), ElementsAre(4, 1, 0));
}

TEST(CreateTokenizer, RefusesScoresThatAreNone) {
  Vocabulary vocabulary = Make("llama", {kUnk, {"a", -1}});
  vocabulary.scores.pop_back();
  EXPECT_THAT(std::string(CreateTokenizer(vocabulary).status().message()),
              HasSubstr("tokenizer.ggml.scores"));
  vocabulary.scores.push_back(-1.0 / 0.0);
  EXPECT_THAT(std::string(CreateTokenizer(vocabulary).status().message()),
              HasSubstr("tokenizer.ggml.scores[1]"));
  vocabulary = Make("t5", {kUnk, {"a", -1}});
  vocabulary.unknown = 2;
  EXPECT_THAT(std::string(CreateTokenizer(vocabulary).status().message()),
              HasSubstr("unknown_token_id"));
}

}  // namespace
}  // namespace penstock
