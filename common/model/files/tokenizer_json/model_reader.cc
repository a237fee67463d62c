#include "common/model/files/tokenizer_json/model_reader.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/byte_token.h"

namespace penstock {
namespace {

// Ids bound the tables that they index.
constexpr int64_t kMaxTokens = int64_t{1} << 22;

}  // namespace

TokenId ModelReader::Find(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

absl::Status ModelReader::Place(const JsonValue& where, const std::string& text,
                                int64_t id) {
  if (id < 0 || id >= kMaxTokens) {
    return where.Error(
        absl::StrCat("has the id ", id, ", not one of 0 to ", kMaxTokens - 1));
  }
  const auto place = static_cast<size_t>(id);
  std::vector<std::string>& tokens = vocabulary_.tokens;
  if (place >= tokens.size()) {
    tokens.resize(place + 1);
    vocabulary_.kinds.resize(place + 1, TokenKind::kUnused);
  }
  if (vocabulary_.kinds[place] != TokenKind::kUnused) {
    return where.Error(absl::StrCat("has the id ", id, " of another token"));
  }
  if (!ids_.emplace(text, static_cast<TokenId>(id)).second) {
    return where.Error("is a token already");
  }
  tokens[place] = text;
  vocabulary_.kinds[place] = TokenKind::kNormal;
  return absl::OkStatus();
}

absl::Status ModelReader::Read(bool byte_level) {
  RETURN_IF_ERROR(model_.CheckObject());
  const JsonValue type_value = model_.Member("type");
  // Files of old leave it to be seen.
  std::string type = model_.Member("merges").absent() ? "Unigram" : "BPE";
  if (!type_value.absent()) {
    ASSIGN_OR_RETURN(type, type_value.String());
  }
  if (type == "BPE") {
    RETURN_IF_ERROR(ReadBpe(byte_level));
  } else if (type == "Unigram") {
    if (byte_level) {
      return type_value.Unknown("model after ByteLevel", type);
    }
    RETURN_IF_ERROR(ReadUnigram());
  } else {
    return type_value.Unknown("model", type);
  }
  ASSIGN_OR_RETURN(vocabulary_.byte_fallback,
                   model_.Member("byte_fallback").BoolOr(false));
  if (vocabulary_.byte_fallback) MarkByteTokens();
  RETURN_IF_ERROR(ReadAddedTokens());
  if (!vocabulary_.scores.empty()) {
    vocabulary_.scores.resize(vocabulary_.tokens.size());
  }
  return absl::OkStatus();
}

absl::Status ModelReader::CheckBpeOptions() const {
  for (const char* option :
       {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonValue value = model_.Member(option);
    if (value.absent()) continue;
    ASSIGN_OR_RETURN(const std::string text, value.String());
    if (!text.empty()) return value.Unknown("mark", text);
  }
  const JsonValue dropout = model_.Member("dropout");
  if (dropout.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double share, dropout.Number());
  return share == 0 ? absl::OkStatus()
                    : dropout.Unknown("share", absl::StrCat(share));
}

absl::Status ModelReader::ReadBpe(bool byte_level) {
  vocabulary_.model = byte_level ? "gpt2" : "bpe";
  RETURN_IF_ERROR(CheckBpeOptions());
  ASSIGN_OR_RETURN(vocabulary_.ignore_merges,
                   model_.Member("ignore_merges").BoolOr(false));
  ASSIGN_OR_RETURN(vocabulary_.fuse_unknown,
                   model_.Member("fuse_unk").BoolOr(false));
  RETURN_IF_ERROR(ReadBpeTokens());
  const JsonValue unknown = model_.Member("unk_token");
  if (!unknown.absent()) {
    ASSIGN_OR_RETURN(const std::string text, unknown.String());
    if (!text.empty()) {
      vocabulary_.unknown = Find(text);
      if (vocabulary_.unknown == -1) return unknown.Error("is no token");
      vocabulary_.use_unknown = true;
    }
  }
  return ReadMerges();
}

absl::Status ModelReader::ReadBpeTokens() {
  const JsonValue tokens = model_.Member("vocab");
  RETURN_IF_ERROR(tokens.CheckObject());
  ids_.reserve(tokens.size());
  for (const auto& [text, id] : tokens.json().items()) {
    if (!id.is_number_integer()) {
      return tokens.Error(absl::StrCat("has no id for '", text, "'"));
    }
    absl::Status placed = Place(tokens, text, id.get<int64_t>());
    if (!placed.ok()) {
      return absl::Status(placed.code(),
                          absl::StrCat(placed.message(), ": '", text, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenId> ModelReader::MergePart(const JsonValue& merge,
                                               const std::string& text) const {
  const TokenId id = Find(text);
  if (id != -1) return id;
  return merge.Error(absl::StrCat("needs '", text, "', which is no token"));
}

// Each is "left right" or ["left", "right"].
absl::Status ModelReader::ReadMerges() {
  const JsonValue merges = model_.Member("merges");
  RETURN_IF_ERROR(merges.CheckArray());
  vocabulary_.merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const JsonValue merge = merges.Element(i);
    std::string left;
    std::string right;
    if (merge.is_array() && merge.size() == 2) {
      ASSIGN_OR_RETURN(left, merge.Element(0).String());
      ASSIGN_OR_RETURN(right, merge.Element(1).String());
    } else {
      ASSIGN_OR_RETURN(const std::string text, merge.String());
      const size_t space = text.find(' ');
      if (space == std::string::npos ||
          text.find(' ', space + 1) != std::string::npos) {
        return merge.Error("is not two tokens with a space between");
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    }
    TokenMerge made;
    ASSIGN_OR_RETURN(made.left, MergePart(merge, left));
    ASSIGN_OR_RETURN(made.right, MergePart(merge, right));
    ASSIGN_OR_RETURN(made.result, MergePart(merge, left + right));
    vocabulary_.merges.push_back(made);
  }
  return absl::OkStatus();
}

absl::Status ModelReader::ReadUnigram() {
  vocabulary_.model = "t5";
  vocabulary_.fuse_unknown = true;
  const JsonValue tokens = model_.Member("vocab");
  RETURN_IF_ERROR(tokens.CheckArray());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const JsonValue token = tokens.Element(i);
    RETURN_IF_ERROR(token.CheckArray());
    if (token.size() != 2) return token.Error("is not a token and its score");
    ASSIGN_OR_RETURN(const std::string text, token.Element(0).String());
    ASSIGN_OR_RETURN(const double score, token.Element(1).Number());
    if (!std::isfinite(score)) return token.Error("has no finite score");
    RETURN_IF_ERROR(Place(token, text, static_cast<int64_t>(i)));
    vocabulary_.scores.push_back(score);
  }
  const JsonValue unknown = model_.Member("unk_id");
  if (unknown.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t id, unknown.Integer());
  if (id < 0 || static_cast<size_t>(id) >= tokens.size()) {
    return unknown.Error("is no token's id");
  }
  vocabulary_.unknown = static_cast<TokenId>(id);
  vocabulary_.kinds[id] = TokenKind::kUnknown;
  vocabulary_.use_unknown = true;
  return absl::OkStatus();
}

void ModelReader::MarkByteTokens() {
  for (size_t i = 0; i < vocabulary_.tokens.size(); ++i) {
    if (ByteOfToken(vocabulary_.tokens[i]) >= 0) {
      vocabulary_.kinds[i] = TokenKind::kByte;
    }
  }
}

absl::Status ModelReader::ReadAddedTokens() {
  const JsonValue added = file_.Member("added_tokens");
  if (added.absent()) return absl::OkStatus();
  RETURN_IF_ERROR(added.CheckArray());
  for (size_t i = 0; i < added.size(); ++i) {
    RETURN_IF_ERROR(AddToken(added.Element(i)));
  }
  return absl::OkStatus();
}

absl::Status ModelReader::AddToken(const JsonValue& token) {
  const JsonValue content = token.Member("content");
  ASSIGN_OR_RETURN(const std::string text, content.String());
  if (text.empty()) return content.Error("is empty");
  ASSIGN_OR_RETURN(const int64_t id, token.Member("id").Integer());
  const TokenId known = Find(text);
  if (known == -1) {
    RETURN_IF_ERROR(Place(content, text, id));
  } else if (known != id) {
    return token.Member("id").Error(
        absl::StrCat("is ", id, ", but the model gives '", text, "' ", known));
  }
  TokenMatching matching;
  matching.id = static_cast<TokenId>(id);
  ASSIGN_OR_RETURN(const bool special, token.Member("special").BoolOr(false));
  ASSIGN_OR_RETURN(matching.left_strip, token.Member("lstrip").BoolOr(false));
  ASSIGN_OR_RETURN(matching.right_strip, token.Member("rstrip").BoolOr(false));
  ASSIGN_OR_RETURN(matching.single_word,
                   token.Member("single_word").BoolOr(false));
  ASSIGN_OR_RETURN(matching.normalized,
                   token.Member("normalized").BoolOr(!special));
  vocabulary_.kinds[id] =
      special ? TokenKind::kControl : TokenKind::kUserDefined;
  if (matching.left_strip || matching.right_strip || matching.single_word ||
      matching.normalized) {
    vocabulary_.matchings.push_back(matching);
  }
  return absl::OkStatus();
}

}  // namespace penstock
