#include "common/model/files/gguf_vocabulary.h"

#include <string>
#include <vector>

#include "common/model/files/testing/gguf_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using K = TokenKind;

// A SentencePiece vocabulary with nothing said that can go unsaid.
GgufDocument SentencePiece(const char* model) {
  GgufDocument document;
  document.Set(StringEntry("general.architecture", "llama"));
  document.Set(StringEntry("tokenizer.ggml.model", model));
  document.Set(StringsEntry("tokenizer.ggml.tokens",
                            {"<unk>", "<s>", "</s>", "<0x0A>", "a", "<x>"}));
  document.Set(Int32sEntry("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 4}));
  std::string scores;
  for (const float score : {0.0f, 0.0f, 0.0f, 0.0f, -1.5f, 0.0f}) {
    scores += GgufNumber(score);
  }
  document.Set({"tokenizer.ggml.scores",
                static_cast<uint32_t>(GgufType::kArray),
                GgufArray(GgufType::kFloat32, 6, scores)});
  return document;
}

Vocabulary Read(const GgufDocument& document) {
  const std::vector<uint8_t> file = document.Encode();
  const auto reader = GgufReader::Parse(file, "test.gguf");
  EXPECT_TRUE(reader.ok()) << reader.status();
  const auto vocabulary = ReadGgufVocabulary(*reader);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return vocabulary.ok() ? *vocabulary : Vocabulary();
}

TEST(GgufVocabulary, SentencePieceHasItsUsualTokensUnlessItSaysOtherwise) {
  GgufDocument document = SentencePiece("llama");
  Vocabulary vocabulary = Read(document);
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_EQ(vocabulary.pre_tokenizer, "");
  EXPECT_THAT(vocabulary.kinds,
              ElementsAre(K::kUnknown, K::kControl, K::kControl, K::kByte,
                          K::kNormal, K::kUserDefined));
  EXPECT_EQ(vocabulary.scores[4], -1.5);
  EXPECT_EQ(vocabulary.unknown, 0);
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  EXPECT_TRUE(vocabulary.byte_fallback);
  EXPECT_TRUE(vocabulary.use_unknown);
  EXPECT_TRUE(vocabulary.escaped_spaces);
  EXPECT_THAT(vocabulary.stop_tokens, ElementsAre(2));
  document.Set(BoolEntry("tokenizer.ggml.add_bos_token", false));
  document.Set(BoolEntry("tokenizer.ggml.add_eos_token", true));
  document.Set(Uint32Entry("tokenizer.ggml.bos_token_id", 5));
  vocabulary = Read(document);
  EXPECT_FALSE(vocabulary.add_bos);
  EXPECT_TRUE(vocabulary.add_eos);
  EXPECT_EQ(vocabulary.bos, 5);
}

TEST(GgufVocabulary, UnigramNamesItsTokensItself) {
  const Vocabulary vocabulary = Read(SentencePiece("t5"));
  EXPECT_EQ(vocabulary.bos, -1);
  EXPECT_EQ(vocabulary.unknown, -1);
  EXPECT_FALSE(vocabulary.use_unknown);
  EXPECT_FALSE(vocabulary.add_bos);
}

TEST(GgufVocabulary, WhatSentencePieceDoesToSpacesBecomesSteps) {
  using Kind = NormalizerStep::Kind;
  const auto kinds = [](const GgufDocument& document) {
    std::vector<Kind> found;
    for (const NormalizerStep& step : Read(document).normalizers) {
      found.push_back(step.kind);
    }
    return found;
  };
  GgufDocument document = SentencePiece("llama");
  EXPECT_THAT(kinds(document), ElementsAre(Kind::kPrepend, Kind::kReplace));
  EXPECT_TRUE(Read(document).strip_first_space);
  document.Set(BoolEntry("tokenizer.ggml.remove_extra_whitespaces", true));
  EXPECT_THAT(kinds(document),
              ElementsAre(Kind::kReplaceRegex, Kind::kReplaceRegex,
                          Kind::kPrepend, Kind::kReplace));
  document.Set(BoolEntry("tokenizer.ggml.remove_extra_whitespaces", false));
  document.Set(BoolEntry("tokenizer.ggml.add_space_prefix", false));
  EXPECT_THAT(kinds(document), ElementsAre(Kind::kReplace));
  EXPECT_FALSE(Read(document).strip_first_space);
}

TEST(GgufVocabulary, SpecialTokensOfPhi3TakeWhiteSpaceAlong) {
  GgufDocument document = SentencePiece("llama");
  EXPECT_TRUE(Read(document).matchings.empty());
  document.Set(StringEntry("general.architecture", "phi3"));
  const Vocabulary vocabulary = Read(document);
  ASSERT_EQ(vocabulary.matchings.size(), 1u);
  EXPECT_EQ(vocabulary.matchings[0].id, 2);  // </s>, but not <s>
  EXPECT_TRUE(vocabulary.matchings[0].right_strip);
}

TEST(GgufVocabulary, SomePreTokenizersBeginTextsWithoutSayingSo) {
  GgufDocument document;
  document.Set(StringEntry("tokenizer.ggml.model", "gpt2"));
  document.Set(StringsEntry("tokenizer.ggml.tokens", {"a", "<s>"}));
  document.Set(Int32sEntry("tokenizer.ggml.token_type", {1, 3}));
  document.Set(StringsEntry("tokenizer.ggml.merges", {}));
  const auto adds = [&document](const char* pre) {
    document.Set(StringEntry("tokenizer.ggml.pre", pre));
    return Read(document).add_bos;
  };
  EXPECT_FALSE(adds("llama-bpe"));  // there is no bos
  document.Set(Uint32Entry("tokenizer.ggml.bos_token_id", 1));
  EXPECT_TRUE(adds("llama-bpe"));
  EXPECT_TRUE(adds("tekken"));
  EXPECT_FALSE(adds("qwen2"));
  document.Set(BoolEntry("tokenizer.ggml.add_bos_token", false));
  EXPECT_FALSE(adds("llama-bpe"));
}

}  // namespace
}  // namespace penstock
