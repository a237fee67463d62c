// The reference cases of tests/data/cases against the real model's vocabulary.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/model/files/model_file.h"
#include "common/model/text/chat_template.h"
#include "common/model/text/sequence_text.h"
#include "common/model/text/text_stream.h"
#include "common/model/text/tokenizer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

const ModelFile& RealModel() {
  static const ModelFile* const model = [] {
    auto file =
        OpenModelFile(PENSTOCK_MODELS "/SmolLM2-135M-Instruct.Q4_1.gguf");
    EXPECT_TRUE(file.ok()) << file.status();
    return file->release();
  }();
  return *model;
}

const Tokenizer& RealTokenizer() {
  static const Tokenizer* const tokenizer = [] {
    auto created = CreateTokenizer(RealModel().vocabulary());
    EXPECT_TRUE(created.ok()) << created.status();
    return created->release();
  }();
  return *tokenizer;
}

std::vector<Json> Cases(const std::string& name) {
  std::ifstream in(PENSTOCK_TEST_DATA "/cases/" + name);
  std::vector<Json> cases;
  for (std::string line; std::getline(in, line);) {
    cases.push_back(Json::parse(line));
  }
  EXPECT_FALSE(cases.empty()) << name;
  return cases;
}

Ids Encode(const std::string& text, bool parse_special) {
  const auto ids = RealTokenizer().Encode(
      text, parse_special ? SpecialTokens::kParse : SpecialTokens::kPlain);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return *ids;
}

TEST(TokenizerCases, IdsAreTheReferences) {
  for (const Json& row : Cases("tokenizer.jsonl")) {
    SCOPED_TRACE(row.dump());
    const std::string text = row["text"];
    const Ids ids = row["ids"];
    const bool parse = row["parse_special"];
    EXPECT_EQ(Encode(text, parse), ids);
    if (row.value("parse_special_any", false)) {
      EXPECT_EQ(Encode(text, !parse), ids);
    }
  }
}

TEST(TokenizerCases, DecodedBytesAreTheReferences) {
  for (const Json& row : Cases("tokenizer.jsonl")) {
    SCOPED_TRACE(row.dump());
    const Ids ids = row["ids"];
    const std::string decoded = *DecodeBytes(RealTokenizer(), ids, false);
    if (row["decoded"].is_null()) {
      EXPECT_EQ(absl::BytesToHexString(decoded), row["decoded_hex"]);
    } else {
      EXPECT_EQ(decoded, row["decoded"]);
    }
    EXPECT_EQ(decoded == row["text"].get<std::string>(), row["round_trip"]);
    if (row.contains("decoded_skip_special")) {
      EXPECT_EQ(*DecodeBytes(RealTokenizer(), ids, true),
                row["decoded_skip_special"]);
    }
  }
}

TEST(TokenizerCases, ContestedIdsAreTheModelsOwn) {
  for (const Json& row : Cases("tokenizer_contested.jsonl")) {
    SCOPED_TRACE(row.dump());
    const Ids ids = Encode(row["text"], row["parse_special"]);
    if (row["preferred"] == "either") {
      EXPECT_TRUE(ids == row["ids_hf"].get<Ids>() ||
                  ids == row["ids_llamacpp"].get<Ids>());
    } else {
      ASSERT_EQ(row["preferred"], "hf");
      EXPECT_EQ(ids, row["ids_hf"].get<Ids>());
    }
  }
}

TEST(TokenizerCases, PromptsAndScoredTextsAreTheReferences) {
  for (const Json& row : Cases("scores.jsonl")) {
    EXPECT_EQ(Encode(row["text"], true), row["ids"].get<Ids>());
  }
  for (const Json& row : Cases("generation.jsonl")) {
    if (row["kind"] != "raw") continue;
    EXPECT_EQ(Encode(row["prompt"], true), row["prompt_ids"].get<Ids>());
  }
}

TEST(StreamingCases, DeltasAreTheReferences) {
  for (const Json& row : Cases("streaming.jsonl")) {
    SCOPED_TRACE(row.dump());
    Utf8Assembler assembler;
    std::string text;
    for (size_t i = 0; i < row["ids"].size(); ++i) {
      const TokenId id = row["ids"][i];
      const absl::string_view bytes = RealTokenizer().TokenBytes(id);
      EXPECT_EQ(absl::BytesToHexString(bytes), row["pieces_hex"][i]);
      const bool skip = row["skip_special"] && RealTokenizer().IsSpecial(id);
      const std::string delta = assembler.Push(skip ? "" : bytes);
      EXPECT_EQ(delta, row["deltas"][i]);
      text += delta;
    }
    const std::string flush = assembler.Flush();
    EXPECT_EQ(flush, row["flush"]);
    EXPECT_EQ(text + flush, row["text"]);
  }
}

TEST(StreamingCases, SequenceTextDeliversTheSame) {
  for (const Json& row : Cases("streaming.jsonl")) {
    if (!row["skip_special"]) continue;
    SCOPED_TRACE(row.dump());
    SequenceText text(&RealTokenizer());
    for (size_t i = 0; i < row["ids"].size(); ++i) {
      EXPECT_EQ(text.Push(row["ids"][i]).text, row["deltas"][i]);
    }
    EXPECT_EQ(text.Flush().text, row["flush"]);
  }
}

TEST(ChatTemplateCases, TextAndIdsAreTheReferences) {
  const auto chat = ChatTemplate::Parse(RealModel().chat_template());
  ASSERT_TRUE(chat.ok()) << chat.status();
  for (const Json& row : Cases("chat_template.jsonl")) {
    SCOPED_TRACE(row["name"]);
    std::vector<ChatMessage> messages;
    for (const Json& message : row["messages"]) {
      messages.push_back({message["role"], message["content"]});
    }
    const auto pieces = (*chat)->Render(
        messages, {.add_generation_prompt = row["add_generation_prompt"]});
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    const std::string text = JoinPieces(*pieces);
    EXPECT_EQ(text, row["text"]);
    EXPECT_EQ(Encode(text, true), row["ids"].get<Ids>());
    const bool differs = row.contains("ids_content_plain");
    EXPECT_EQ(*EncodePieces(*pieces, RealTokenizer()),
              row[differs ? "ids_content_plain" : "ids"].get<Ids>());
  }
}

TEST(ChatTemplateCases, GenerationPromptsAreTheReferences) {
  const auto chat = ChatTemplate::Parse(RealModel().chat_template());
  ASSERT_TRUE(chat.ok()) << chat.status();
  int chats = 0;
  for (const Json& row : Cases("generation.jsonl")) {
    if (row["kind"] != "chat") continue;
    ++chats;
    std::vector<ChatMessage> messages;
    for (const Json& message : row["messages"]) {
      messages.push_back({message["role"], message["content"]});
    }
    const auto pieces =
        (*chat)->Render(messages, {.add_generation_prompt = true});
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    EXPECT_EQ(*EncodePieces(*pieces, RealTokenizer()),
              row["prompt_ids"].get<Ids>());
  }
  EXPECT_GT(chats, 0);
}

}  // namespace
}  // namespace penstock
