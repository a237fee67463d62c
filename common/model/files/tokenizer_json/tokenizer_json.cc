#include "common/model/files/tokenizer_json/tokenizer_json.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/stop_tokens.h"
#include "common/model/files/tokenizer_json/json_value.h"
#include "common/model/files/tokenizer_json/model_reader.h"
#include "common/model/files/tokenizer_json/steps_reader.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

// The id of a token that the configuration names, as text or as an object with
// its content; -1 for none.
absl::StatusOr<TokenId> ReadNamedToken(const JsonValue& value,
                                       const ModelReader& model) {
  if (value.absent()) return -1;
  const JsonValue content = value.is_object() ? value.Member("content") : value;
  ASSIGN_OR_RETURN(const std::string text, content.String());
  const TokenId id = model.Find(text);
  if (id == -1) {
    return content.Error(absl::StrCat("'", text, "' is no token"));
  }
  return id;
}

// Whether `id` frames a text, and that the one that does is `frame`'s.
absl::StatusOr<bool> ReadFraming(const JsonValue& flag, TokenId frame,
                                 absl::string_view name, size_t tokens,
                                 TokenId& id) {
  if (frame >= 0 && static_cast<size_t>(frame) >= tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.json: post_processor names the token ", frame,
                     ", which is not there"));
  }
  if (id == -1) id = frame;
  ASSIGN_OR_RETURN(const bool framed, flag.BoolOr(frame != -1));
  if (framed && id == -1) return flag.Error("is set, but there is no token");
  if (framed && frame != -1 && id != frame) {
    return absl::UnimplementedError(
        absl::StrCat("tokenizer.json: post_processor adds the token ", frame,
                     ", which is not the ", name, " ", id));
  }
  return framed;
}

absl::StatusOr<std::string> ReadChatTemplate(const JsonValue& value) {
  if (value.absent() || value.is_string()) {
    return value.absent() ? std::string() : value.String();
  }
  RETURN_IF_ERROR(value.CheckArray());
  for (size_t i = 0; i < value.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string name,
                     value.Element(i).Member("name").String());
    if (name == "default") return value.Element(i).Member("template").String();
  }
  return std::string();
}

// Leaves out added tokens that the embedding has no row for, as Gemma 3's text
// models have them, where nothing else speaks of them.
absl::Status DropTokensWithoutRows(int64_t rows, Vocabulary& vocabulary) {
  const auto size = static_cast<int64_t>(vocabulary.tokens.size());
  auto refuse = [&](int64_t id) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.json has the token ", id,
                     ", but the model's embedding has ", rows, " rows"));
  };
  for (int64_t id = rows; id < size; ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    if (kind != TokenKind::kControl && kind != TokenKind::kUserDefined &&
        kind != TokenKind::kUnused) {
      return refuse(id);
    }
  }
  for (const TokenMerge& merge : vocabulary.merges) {
    const TokenId last = std::max({merge.left, merge.right, merge.result});
    if (last >= rows) return refuse(last);
  }
  for (TokenId id : {vocabulary.bos, vocabulary.eos, vocabulary.unknown}) {
    if (id >= rows) return refuse(id);
  }
  auto& matchings = vocabulary.matchings;
  matchings.erase(std::remove_if(matchings.begin(), matchings.end(),
                                 [&](const TokenMatching& matching) {
                                   return matching.id >= rows;
                                 }),
                  matchings.end());
  return absl::OkStatus();
}

absl::Status FillRows(int64_t rows, Vocabulary& vocabulary) {
  RETURN_IF_ERROR(DropTokensWithoutRows(rows, vocabulary));
  vocabulary.tokens.resize(rows);
  vocabulary.kinds.resize(rows, TokenKind::kUnused);
  if (!vocabulary.scores.empty()) vocabulary.scores.resize(rows);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerContent> ReadTokenizerJson(const TokenizerFiles& files,
                                                   int64_t rows) {
  constexpr absl::string_view kFile = "tokenizer.json";
  constexpr absl::string_view kConfig = "tokenizer_config.json";
  ASSIGN_OR_RETURN(const nlohmann::json tokenizer_json,
                   ParseJson(kFile, files.tokenizer));
  const JsonValue file(&tokenizer_json, std::string(kFile));
  nlohmann::json config_json;
  if (!files.config.empty()) {
    ASSIGN_OR_RETURN(config_json, ParseJson(kConfig, files.config));
  }
  const JsonValue config(&config_json, std::string(kConfig));

  TokenizerContent content;
  Vocabulary& vocabulary = content.vocabulary;
  bool byte_level = false;
  RETURN_IF_ERROR(ReadNormalizer(file.Member("normalizer"), vocabulary));
  RETURN_IF_ERROR(
      ReadPreTokenizer(file.Member("pre_tokenizer"), vocabulary, byte_level));
  ModelReader model(file, vocabulary);
  RETURN_IF_ERROR(model.Read(byte_level));
  RETURN_IF_ERROR(ReadDecoder(file.Member("decoder"), vocabulary));
  TextFrame frame;
  RETURN_IF_ERROR(ReadPostProcessor(file.Member("post_processor"), frame));

  const size_t tokens = vocabulary.tokens.size();
  ASSIGN_OR_RETURN(vocabulary.bos,
                   ReadNamedToken(config.Member("bos_token"), model));
  ASSIGN_OR_RETURN(vocabulary.eos,
                   ReadNamedToken(config.Member("eos_token"), model));
  ASSIGN_OR_RETURN(vocabulary.add_bos,
                   ReadFraming(config.Member("add_bos_token"), frame.before,
                               "bos_token", tokens, vocabulary.bos));
  ASSIGN_OR_RETURN(vocabulary.add_eos,
                   ReadFraming(config.Member("add_eos_token"), frame.after,
                               "eos_token", tokens, vocabulary.eos));
  RETURN_IF_ERROR(FillRows(rows, vocabulary));
  FindStopTokens({}, vocabulary);
  if (!files.chat_template.empty()) {
    content.chat_template = std::string(files.chat_template);
  } else {
    ASSIGN_OR_RETURN(content.chat_template,
                     ReadChatTemplate(config.Member("chat_template")));
  }
  return content;
}

}  // namespace penstock
