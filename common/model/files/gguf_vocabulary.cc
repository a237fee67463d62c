#include "common/model/files/gguf_vocabulary.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// The one tokenizer model of this reader: byte-level BPE.
constexpr absl::string_view kModel = "gpt2";
constexpr absl::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr absl::string_view kKindsKey = "tokenizer.ggml.token_type";
constexpr absl::string_view kMergesKey = "tokenizer.ggml.merges";

// Spellings of control tokens after which a model has nothing more to say.
constexpr absl::string_view kEndSpellings[] = {
    "<|endoftext|>", "<|end_of_text|>",
    "<|im_end|>",    "<|eot_id|>",
    "<|eom_id|>",    "<|end|>",
    "<|endofturn|>", "<|end_of_turn|>",
    "<end_of_turn>", "<|END_OF_TURN_TOKEN|>",
    "</s>",          "<eos>",
    "<EOT>",
};

// Kinds by their number on disk, less 1.
constexpr TokenKind kKinds[] = {
    TokenKind::kNormal,      TokenKind::kUnknown, TokenKind::kControl,
    TokenKind::kUserDefined, TokenKind::kUnused,  TokenKind::kByte,
};

class VocabularyReader {
 public:
  explicit VocabularyReader(const GgufReader& reader)
      : reader_(reader), metadata_(reader.metadata()) {}

  absl::StatusOr<Vocabulary> Read() {
    RETURN_IF_ERROR(ReadModel());
    RETURN_IF_ERROR(ReadTokens());
    RETURN_IF_ERROR(ReadKinds());
    RETURN_IF_ERROR(ReadMerges());
    RETURN_IF_ERROR(ReadSpecialIds());
    return std::move(vocabulary_);
  }

 private:
  absl::Status Error(GgufError error, std::string field, std::string found,
                     std::string expected) const {
    return reader_.errors().Make(error, {.field = std::move(field),
                                         .found = std::move(found),
                                         .expected = std::move(expected)});
  }

  absl::Status ReadModel() {
    constexpr absl::string_view kKey = "tokenizer.ggml.model";
    ASSIGN_OR_RETURN(absl::string_view model, metadata_.String(kKey));
    if (model != kModel) {
      return Error(GgufError::kTokenizerModel, std::string(kKey),
                   QuoteForError(model), QuoteForError(kModel));
    }
    vocabulary_.model = std::string(model);
    ASSIGN_OR_RETURN(absl::string_view pre,
                     metadata_.StringOr("tokenizer.ggml.pre", "default"));
    vocabulary_.pre_tokenizer = std::string(pre);
    return absl::OkStatus();
  }

  absl::Status ReadTokens() {
    ASSIGN_OR_RETURN(tokens_, metadata_.Strings(kTokensKey));
    ids_.reserve(tokens_.size());
    vocabulary_.tokens.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      std::string field = absl::StrCat(kTokensKey, "[", i, "]");
      if (tokens_[i].empty()) {
        return Error(GgufError::kEmptyToken, field, "an empty token",
                     "at least one character");
      }
      auto [it, fresh] = ids_.emplace(tokens_[i], static_cast<TokenId>(i));
      if (!fresh) {
        return Error(GgufError::kDuplicateToken, field,
                     absl::StrCat(QuoteForError(tokens_[i]), " as in [",
                                  it->second, "]"),
                     "each token once");
      }
      vocabulary_.tokens.emplace_back(tokens_[i]);
    }
    return absl::OkStatus();
  }

  absl::Status ReadKinds() {
    ASSIGN_OR_RETURN(std::vector<int64_t> kinds, metadata_.Integers(kKindsKey));
    if (kinds.size() != tokens_.size()) {
      return Error(GgufError::kTokenKindCount, std::string(kKindsKey),
                   absl::StrCat(kinds.size(), " kinds"),
                   absl::StrCat("one for each of ", tokens_.size(), " tokens"));
    }
    vocabulary_.kinds.reserve(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] < 1 || kinds[i] > static_cast<int64_t>(std::size(kKinds))) {
        return Error(
            GgufError::kTokenKind, absl::StrCat(kKindsKey, "[", i, "]"),
            absl::StrCat(kinds[i]), absl::StrCat("1 to ", std::size(kKinds)));
      }
      vocabulary_.kinds.push_back(kKinds[kinds[i] - 1]);
    }
    return absl::OkStatus();
  }

  // The id of a part of merge `index`.
  absl::StatusOr<TokenId> PartId(size_t index, absl::string_view part) const {
    auto it = ids_.find(part);
    if (it != ids_.end()) return it->second;
    return Error(GgufError::kMergeToken,
                 absl::StrCat(kMergesKey, "[", index, "]"), QuoteForError(part),
                 "a token of the vocabulary");
  }

  absl::Status ReadMerges() {
    ASSIGN_OR_RETURN(std::vector<absl::string_view> merges,
                     metadata_.Strings(kMergesKey));
    absl::flat_hash_set<std::pair<TokenId, TokenId>> seen;
    seen.reserve(merges.size());
    vocabulary_.merges.reserve(merges.size());
    std::string joined;
    for (size_t i = 0; i < merges.size(); ++i) {
      absl::string_view merge = merges[i];
      size_t space = merge.find(' ');
      if (space == absl::string_view::npos || space == 0 ||
          space + 1 == merge.size() || merge.rfind(' ') != space) {
        return Error(GgufError::kMergeSyntax,
                     absl::StrCat(kMergesKey, "[", i, "]"),
                     QuoteForError(merge), "two tokens with a space between");
      }
      absl::string_view left = merge.substr(0, space);
      absl::string_view right = merge.substr(space + 1);
      joined.assign(left.data(), left.size());
      joined.append(right.data(), right.size());
      ASSIGN_OR_RETURN(TokenId left_id, PartId(i, left));
      ASSIGN_OR_RETURN(TokenId right_id, PartId(i, right));
      RETURN_IF_ERROR(PartId(i, joined).status());
      if (!seen.emplace(left_id, right_id).second) {
        return Error(
            GgufError::kDuplicateMerge, absl::StrCat(kMergesKey, "[", i, "]"),
            absl::StrCat(QuoteForError(merge), " again"), "each merge once");
      }
      vocabulary_.merges.emplace_back(merge);
    }
    return absl::OkStatus();
  }

  // -1 when the file does not name one.
  absl::StatusOr<TokenId> SpecialId(absl::string_view name) const {
    std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    ASSIGN_OR_RETURN(int64_t id,
                     metadata_.IntegerOr(key, {INT64_MIN, INT64_MAX}, -1));
    if (metadata_.Find(key) != nullptr &&
        (id < 0 || id >= static_cast<int64_t>(tokens_.size()))) {
      return Error(GgufError::kTokenId, key, absl::StrCat(id),
                   absl::StrCat("0 to ", tokens_.size() - 1));
    }
    return static_cast<TokenId>(id);
  }

  absl::Status ReadSpecialIds() {
    ASSIGN_OR_RETURN(vocabulary_.bos, SpecialId("bos"));
    ASSIGN_OR_RETURN(vocabulary_.eos, SpecialId("eos"));
    ASSIGN_OR_RETURN(vocabulary_.unknown, SpecialId("unknown"));
    ASSIGN_OR_RETURN(vocabulary_.add_bos,
                     metadata_.BoolOr("tokenizer.ggml.add_bos_token", false));
    ASSIGN_OR_RETURN(TokenId end_of_turn, SpecialId("eot"));
    ASSIGN_OR_RETURN(TokenId end_of_message, SpecialId("eom"));
    for (TokenId id : {vocabulary_.eos, end_of_turn, end_of_message}) {
      AddStop(id);
    }
    for (absl::string_view spelling : kEndSpellings) {
      auto it = ids_.find(spelling);
      if (it != ids_.end() &&
          vocabulary_.kinds[it->second] == TokenKind::kControl) {
        AddStop(it->second);
      }
    }
    return absl::OkStatus();
  }

  void AddStop(TokenId id) {
    std::vector<TokenId>& stops = vocabulary_.stop_tokens;
    if (id < 0 || std::find(stops.begin(), stops.end(), id) != stops.end()) {
      return;
    }
    stops.push_back(id);
  }

  const GgufReader& reader_;
  const GgufMetadata& metadata_;
  std::vector<absl::string_view> tokens_;
  absl::flat_hash_map<absl::string_view, TokenId> ids_;
  Vocabulary vocabulary_;
};

}  // namespace

absl::StatusOr<Vocabulary> ReadGgufVocabulary(const GgufReader& reader) {
  return VocabularyReader(reader).Read();
}

}  // namespace penstock
