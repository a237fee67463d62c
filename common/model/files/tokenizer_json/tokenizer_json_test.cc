#include "common/model/files/tokenizer_json/tokenizer_json.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kRows = 12;

// A whole tokenizer in the manner of Llama 3, of three characters.
Json Valid() {
  return Json::parse(R"({
    "version": "1.0",
    "added_tokens": [
      {"id": 6, "content": "<s>", "special": true, "normalized": false},
      {"id": 9, "content": "<tool>", "special": false, "rstrip": true}],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "NFC"}, {"type": "Replace", "pattern": {"String": "x"},
                        "content": "a"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Removed",
       "invert": true},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
      "continuing_subword_prefix": "", "ignore_merges": true,
      "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
      "merges": ["a b", ["ab", "c"]]}})");
}

absl::StatusOr<TokenizerContent> Read(const Json& file,
                                      const std::string& config = "",
                                      const std::string& chat_template = "") {
  return ReadTokenizerJson({file.dump(), config, chat_template}, kRows);
}

TEST(TokenizerJson, FillsTheVocabulary) {
  const auto content =
      Read(Valid(), R"({"bos_token": {"content": "<s>"}, "eos_token": "c"})");
  ASSERT_TRUE(content.ok()) << content.status();
  const Vocabulary& vocabulary = content->vocabulary;
  EXPECT_EQ(vocabulary.model, "gpt2");
  EXPECT_EQ(vocabulary.pre_tokenizer, "");
  EXPECT_THAT(vocabulary.tokens, ElementsAre("a", "b", "c", "ab", "abc", "",
                                             "<s>", "", "", "<tool>", "", ""));
  using K = TokenKind;
  EXPECT_THAT(vocabulary.kinds,
              ElementsAre(K::kNormal, K::kNormal, K::kNormal, K::kNormal,
                          K::kNormal, K::kUnused, K::kControl, K::kUnused,
                          K::kUnused, K::kUserDefined, K::kUnused, K::kUnused));
  ASSERT_EQ(vocabulary.merges.size(), 2u);
  EXPECT_EQ(vocabulary.merges[1].left, 3);
  EXPECT_EQ(vocabulary.merges[1].right, 2);
  EXPECT_EQ(vocabulary.merges[1].result, 4);
  EXPECT_TRUE(vocabulary.ignore_merges);
  ASSERT_EQ(vocabulary.normalizers.size(), 2u);
  EXPECT_EQ(vocabulary.normalizers[1].kind, NormalizerStep::Kind::kReplace);
  EXPECT_EQ(vocabulary.normalizers[1].text, "a");
  ASSERT_EQ(vocabulary.pre_tokenizers.size(), 1u);
  EXPECT_EQ(vocabulary.pre_tokenizers[0].pattern, "a+");
  EXPECT_TRUE(vocabulary.pre_tokenizers[0].invert);
  ASSERT_EQ(vocabulary.matchings.size(), 1u);
  EXPECT_EQ(vocabulary.matchings[0].id, 9);
  EXPECT_TRUE(vocabulary.matchings[0].right_strip);
  EXPECT_TRUE(vocabulary.matchings[0].normalized);
  EXPECT_EQ(vocabulary.bos, 6);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_TRUE(vocabulary.add_bos);
  EXPECT_FALSE(vocabulary.add_eos);
  EXPECT_THAT(vocabulary.stop_tokens, ElementsAre(2));
}

TEST(TokenizerJson, ReadsSentencePieceModels) {
  Json file = Json::parse(R"({
    "normalizer": {"type": "Prepend", "prepend": "▁"},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true,
      "byte_fallback": true, "merges": [],
      "vocab": {"<unk>": 0, "<0x41>": 1, "<0x4a": 2, "▁": 3}}})");
  auto content = Read(file);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->vocabulary.model, "bpe");
  EXPECT_EQ(content->vocabulary.kinds[1], TokenKind::kByte);
  EXPECT_EQ(content->vocabulary.kinds[2], TokenKind::kNormal);
  EXPECT_TRUE(content->vocabulary.escaped_spaces);
  EXPECT_TRUE(content->vocabulary.strip_first_space);
  EXPECT_TRUE(content->vocabulary.use_unknown);
  EXPECT_EQ(content->vocabulary.unknown, 0);
  file["model"] = Json::parse(
      R"({"type": "Unigram", "unk_id": 1, "vocab": [["a", -1.5], ["u", 0]]})");
  content = Read(file);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->vocabulary.model, "t5");
  EXPECT_EQ(content->vocabulary.scores[0], -1.5);
  EXPECT_EQ(content->vocabulary.scores.size(), static_cast<size_t>(kRows));
  EXPECT_EQ(content->vocabulary.kinds[1], TokenKind::kUnknown);
}

TEST(TokenizerJson, TheConfigurationDecidesWhatFramesAText) {
  auto content = Read(Valid(), R"({"add_bos_token": false})");
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_FALSE(content->vocabulary.add_bos);
  EXPECT_EQ(content->vocabulary.bos, 6);
  content = Read(Valid(), R"({"eos_token": "c", "add_eos_token": true})");
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_TRUE(content->vocabulary.add_eos);
  EXPECT_FALSE(Read(Valid(), R"({"add_eos_token": true})").ok());
  EXPECT_EQ(Read(Valid(), R"({"bos_token": "a"})").status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(TokenizerJson, ChatTemplatesComeFromTheFileOfTheirOwnFirst) {
  const auto chat = [](const std::string& config, const std::string& file) {
    const auto content = Read(Valid(), config, file);
    EXPECT_TRUE(content.ok()) << content.status();
    return content.ok() ? content->chat_template : "";
  };
  EXPECT_EQ(chat("", ""), "");
  EXPECT_EQ(chat(R"({"chat_template": "one"})", ""), "one");
  EXPECT_EQ(chat(R"({"chat_template": "one"})", "two"), "two");
  EXPECT_EQ(chat(R"({"chat_template": [
                     {"name": "tool_use", "template": "t"},
                     {"name": "default", "template": "d"}]})",
                 ""),
            "d");
}

struct Case {
  std::string where;  // in the message
  std::function<void(Json&)> edit;
};

void ExpectErrors(const std::vector<Case>& cases, absl::StatusCode code) {
  for (const Case& c : cases) {
    Json file = Valid();
    c.edit(file);
    const absl::Status status = Read(file).status();
    EXPECT_EQ(status.code(), code) << c.where << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.where));
  }
}

TEST(TokenizerJson, NamesWhatIsNotKnown) {
  const auto type = [](const char* part, const char* name) {
    return [part, name](Json& file) { file[part] = {{"type", name}}; };
  };
  ExpectErrors(
      {{"normalizer: normalizer 'Precompiled'",
        type("normalizer", "Precompiled")},
       {"pre_tokenizer: pre-tokenizer 'BertPreTokenizer'",
        type("pre_tokenizer", "BertPreTokenizer")},
       {"decoder: decoder 'WordPiece'", type("decoder", "WordPiece")},
       {"post_processor: post-processor 'BertProcessing'",
        type("post_processor", "BertProcessing")},
       {"model.type: model 'WordPiece'", type("model", "WordPiece")},
       {"normalizer.normalizers[1]: normalizer 'Nmt'",
        [](Json& f) {
          f["normalizer"]["normalizers"][1] = {{"type", "Nmt"}};
        }},
       {"pretokenizers[0].behavior: behavior 'Lost'",
        [](Json& f) {
          f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Lost";
        }},
       {"after ByteLevel",
        [](Json& f) {
          f["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}});
        }},
       {"model.dropout", [](Json& f) { f["model"]["dropout"] = 0.1; }},
       {"model.end_of_word_suffix",
        [](Json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }}},
      absl::StatusCode::kUnimplemented);
}

TEST(TokenizerJson, NamesWhatIsWrong) {
  ExpectErrors(
      {{"tokenizer.json: model is absent", [](Json& f) { f.erase("model"); }},
       {"model.vocab is array",
        [](Json& f) {
          f["model"]["vocab"] = {1, 2};
        }},
       {"model.vocab has no id for 'b'",
        [](Json& f) { f["model"]["vocab"]["b"] = "1"; }},
       {"has the id -1", [](Json& f) { f["model"]["vocab"]["b"] = -1; }},
       {"has the id 4194304",
        [](Json& f) { f["model"]["vocab"]["b"] = 1 << 22; }},
       {"has the id 0 of another token: 'b'",
        [](Json& f) { f["model"]["vocab"]["b"] = 0; }},
       {"has the token 12, but",
        [](Json& f) {
          f["model"]["vocab"]["b"] = 12;
          f["model"]["merges"] = Json::array();
        }},
       {"model.merges[0] is not two tokens",
        [](Json& f) { f["model"]["merges"][0] = "a  b"; }},
       {"model.merges[1] needs 'x'",
        [](Json& f) {
          f["model"]["merges"][1] = {"x", "b"};
        }},
       {"model.merges[1] needs 'ba'",
        [](Json& f) {
          f["model"]["merges"][1] = {"b", "a"};
        }},
       {"model.merges[1][0] is number",
        [](Json& f) {
          f["model"]["merges"][1] = {1, "b"};
        }},
       {"added_tokens[1].content is absent",
        [](Json& f) { f["added_tokens"][1].erase("content"); }},
       {"added_tokens[1].id is 9, but the model gives 'a' 0",
        [](Json& f) { f["added_tokens"][1]["content"] = "a"; }},
       {"added_tokens[1].content has the id 6 of another token",
        [](Json& f) { f["added_tokens"][1]["id"] = 6; }},
       {"added_tokens[1].rstrip is string",
        [](Json& f) { f["added_tokens"][1]["rstrip"] = "yes"; }},
       {"normalizers[1].pattern.String is an empty",
        [](Json& f) {
          f["normalizer"]["normalizers"][1]["pattern"]["String"] = "";
        }},
       {"is more than 64 steps",
        [](Json& f) {
          f["normalizer"]["normalizers"] =
              std::vector<Json>(65, {{"type", "NFC"}});
        }},
       {"post_processor.single has no place",
        [](Json& f) { f["post_processor"]["single"].erase(1); }},
       {"names the token 11",
        [](Json& f) {
          f["post_processor"]["special_tokens"]["<s>"]["ids"] = {11};
        }}},
      absl::StatusCode::kInvalidArgument);
}

// Gemma 3's text models have an added token beyond their embedding.
TEST(TokenizerJson, AddedTokensWithoutARowAreLeftOut) {
  Json file = Valid();
  file["added_tokens"].push_back({{"id", 12},
                                  {"content", "<image>"},
                                  {"special", true},
                                  {"lstrip", true}});
  const auto content = Read(file);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->vocabulary.tokens.size(), 12u);
  for (const TokenMatching& matching : content->vocabulary.matchings) {
    EXPECT_LT(matching.id, 12);
  }
  const auto ends = Read(file, R"({"eos_token": "<image>"})");
  EXPECT_EQ(ends.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ends.status().message()),
              HasSubstr("has the token 12, but"));
}

TEST(TokenizerJson, BoundsWhatATextCanCost) {
  const auto error = [](const std::string& text) {
    const auto content = ReadTokenizerJson({text, "", ""}, kRows);
    EXPECT_EQ(content.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(content.status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("tokenizer.json is not JSON"));
  EXPECT_THAT(error("{\"a\": \"\xFF\"}"), HasSubstr("is not JSON in UTF-8"));
  EXPECT_THAT(error(std::string(1 << 20, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(error("[" + std::string(6'000'001, ',')),
              HasSubstr("more than 6000000 values"));
  EXPECT_THAT(error(std::string((64 << 20) + 1, ' ')), HasSubstr("bytes"));
}

}  // namespace
}  // namespace penstock
