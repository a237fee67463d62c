#include "common/model/files/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/stop_tokens.h"

namespace penstock {
namespace {

constexpr absl::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr absl::string_view kKindsKey = "tokenizer.ggml.token_type";
constexpr absl::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr absl::string_view kScoresKey = "tokenizer.ggml.scores";

// Pre-tokenizers whose models begin every text with bos although their files
// may not say so.
constexpr absl::string_view kBosByDefault[] = {
    "llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "tekken", "lfm2",
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
    if (byte_level()) {
      RETURN_IF_ERROR(ReadMerges());
    } else {
      RETURN_IF_ERROR(ReadScores());
      RETURN_IF_ERROR(ReadSentencePieceOptions());
      RETURN_IF_ERROR(ReadMatchings());
    }
    RETURN_IF_ERROR(ReadSpecialIds());
    return std::move(vocabulary_);
  }

 private:
  absl::Status Error(ModelError error, std::string field, std::string found,
                     std::string expected) const {
    return reader_.errors().Make(error, {.field = std::move(field),
                                         .found = std::move(found),
                                         .expected = std::move(expected)});
  }

  absl::Status ReadModel() {
    constexpr absl::string_view kKey = "tokenizer.ggml.model";
    ASSIGN_OR_RETURN(absl::string_view model, metadata_.String(kKey));
    if (model != "gpt2" && model != "llama" && model != "t5") {
      return Error(ModelError::kTokenizerModel, std::string(kKey),
                   QuoteForError(model), "\"gpt2\", \"llama\" or \"t5\"");
    }
    vocabulary_.model = std::string(model);
    if (!byte_level()) return absl::OkStatus();
    ASSIGN_OR_RETURN(absl::string_view pre,
                     metadata_.StringOr("tokenizer.ggml.pre", "default"));
    // Older converters wrote an empty name where they knew none.
    vocabulary_.pre_tokenizer = pre.empty() ? "default" : std::string(pre);
    return absl::OkStatus();
  }

  bool byte_level() const { return vocabulary_.model == "gpt2"; }

  absl::Status ReadTokens() {
    ASSIGN_OR_RETURN(tokens_, metadata_.Strings(kTokensKey));
    ids_.reserve(tokens_.size());
    vocabulary_.tokens.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      std::string field = absl::StrCat(kTokensKey, "[", i, "]");
      if (tokens_[i].empty()) {
        return Error(ModelError::kEmptyToken, field, "an empty token",
                     "at least one character");
      }
      auto [it, fresh] = ids_.emplace(tokens_[i], static_cast<TokenId>(i));
      if (!fresh) {
        return Error(ModelError::kDuplicateToken, field,
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
      return Error(ModelError::kTokenKindCount, std::string(kKindsKey),
                   absl::StrCat(kinds.size(), " kinds"),
                   absl::StrCat("one for each of ", tokens_.size(), " tokens"));
    }
    vocabulary_.kinds.reserve(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] < 1 || kinds[i] > static_cast<int64_t>(std::size(kKinds))) {
        return Error(
            ModelError::kTokenKind, absl::StrCat(kKindsKey, "[", i, "]"),
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
    return Error(ModelError::kMergeToken,
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
        return Error(ModelError::kMergeSyntax,
                     absl::StrCat(kMergesKey, "[", i, "]"),
                     QuoteForError(merge), "two tokens with a space between");
      }
      absl::string_view left = merge.substr(0, space);
      absl::string_view right = merge.substr(space + 1);
      joined.assign(left.data(), left.size());
      joined.append(right.data(), right.size());
      ASSIGN_OR_RETURN(TokenId left_id, PartId(i, left));
      ASSIGN_OR_RETURN(TokenId right_id, PartId(i, right));
      ASSIGN_OR_RETURN(TokenId result, PartId(i, joined));
      if (!seen.emplace(left_id, right_id).second) {
        return Error(
            ModelError::kDuplicateMerge, absl::StrCat(kMergesKey, "[", i, "]"),
            absl::StrCat(QuoteForError(merge), " again"), "each merge once");
      }
      vocabulary_.merges.push_back({left_id, right_id, result});
    }
    return absl::OkStatus();
  }

  absl::Status ReadScores() {
    ASSIGN_OR_RETURN(vocabulary_.scores, metadata_.Floats(kScoresKey));
    if (vocabulary_.scores.size() != tokens_.size()) {
      return Error(ModelError::kTokenScores, std::string(kScoresKey),
                   absl::StrCat(vocabulary_.scores.size(), " scores"),
                   absl::StrCat("one for each of ", tokens_.size(), " tokens"));
    }
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (std::isfinite(vocabulary_.scores[i])) continue;
      return Error(ModelError::kTokenScores,
                   absl::StrCat(kScoresKey, "[", i, "]"),
                   absl::StrCat(vocabulary_.scores[i]), "a finite number");
    }
    return absl::OkStatus();
  }

  // What SentencePiece does to text, as steps.
  absl::Status ReadSentencePieceOptions() {
    constexpr absl::string_view kCharsMap =
        "tokenizer.ggml.precompiled_charsmap";
    if (metadata_.Find(kCharsMap) != nullptr) {
      return Error(ModelError::kTokenizerModel, std::string(kCharsMap),
                   "a precompiled map of characters", "none");
    }
    ASSIGN_OR_RETURN(
        bool strip,
        metadata_.BoolOr("tokenizer.ggml.remove_extra_whitespaces", false));
    ASSIGN_OR_RETURN(bool prefix,
                     metadata_.BoolOr("tokenizer.ggml.add_space_prefix", true));
    using Step = NormalizerStep;
    std::vector<Step>& steps = vocabulary_.normalizers;
    if (strip) {
      steps.push_back({Step::Kind::kReplaceRegex, "^ +| +$", ""});
      steps.push_back({Step::Kind::kReplaceRegex, " {2,}", " "});
    }
    if (prefix) steps.push_back({Step::Kind::kPrepend, "", " "});
    steps.push_back({Step::Kind::kReplace, " ", "\u2581"});
    vocabulary_.escaped_spaces = true;
    vocabulary_.strip_first_space = prefix;
    vocabulary_.byte_fallback = true;
    vocabulary_.use_unknown = true;
    vocabulary_.fuse_unknown = true;
    return absl::OkStatus();
  }

  // A file has no place to say that a token takes the white space after it
  // along; of the families that need it, Phi-3 does.
  absl::Status ReadMatchings() {
    ASSIGN_OR_RETURN(absl::string_view architecture,
                     metadata_.StringOr("general.architecture", ""));
    if (architecture != "phi3") return absl::OkStatus();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (vocabulary_.kinds[i] != TokenKind::kControl || tokens_[i] == "<s>" ||
          tokens_[i] == "<|endoftext|>") {
        continue;
      }
      TokenMatching matching;
      matching.id = static_cast<TokenId>(i);
      matching.right_strip = true;
      vocabulary_.matchings.push_back(matching);
    }
    return absl::OkStatus();
  }

  // -1 when the file does not name one, or `absent` where that is a token.
  absl::StatusOr<TokenId> SpecialId(absl::string_view name,
                                    TokenId absent = -1) const {
    std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    if (absent >= static_cast<int64_t>(tokens_.size())) absent = -1;
    ASSIGN_OR_RETURN(int64_t id,
                     metadata_.IntegerOr(key, {INT64_MIN, INT64_MAX}, absent));
    if (metadata_.Find(key) != nullptr &&
        (id < 0 || id >= static_cast<int64_t>(tokens_.size()))) {
      return Error(ModelError::kTokenId, key, absl::StrCat(id),
                   absl::StrCat("0 to ", tokens_.size() - 1));
    }
    return static_cast<TokenId>(id);
  }

  absl::Status ReadSpecialIds() {
    // A SentencePiece model has <unk>, <s> and </s> in front unless it says
    // otherwise.
    bool in_front = vocabulary_.model == "llama";
    ASSIGN_OR_RETURN(vocabulary_.bos, SpecialId("bos", in_front ? 1 : -1));
    ASSIGN_OR_RETURN(vocabulary_.eos, SpecialId("eos", in_front ? 2 : -1));
    ASSIGN_OR_RETURN(vocabulary_.unknown,
                     SpecialId("unknown", in_front ? 0 : -1));
    if (vocabulary_.unknown == -1) vocabulary_.use_unknown = false;
    ASSIGN_OR_RETURN(
        vocabulary_.add_bos,
        metadata_.BoolOr("tokenizer.ggml.add_bos_token", AddsBosByDefault()));
    ASSIGN_OR_RETURN(vocabulary_.add_eos,
                     metadata_.BoolOr("tokenizer.ggml.add_eos_token", false));
    ASSIGN_OR_RETURN(TokenId end_of_turn, SpecialId("eot"));
    ASSIGN_OR_RETURN(TokenId end_of_message, SpecialId("eom"));
    FindStopTokens({end_of_turn, end_of_message}, vocabulary_);
    return absl::OkStatus();
  }

  bool AddsBosByDefault() const {
    if (vocabulary_.bos == -1) return false;
    return vocabulary_.model == "llama" ||
           std::find(std::begin(kBosByDefault), std::end(kBosByDefault),
                     vocabulary_.pre_tokenizer) != std::end(kBosByDefault);
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
