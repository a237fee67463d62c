#include "common/model/text/tokenizer.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/bpe_model.h"
#include "common/model/text/named_pre_tokenizers.h"
#include "common/model/text/text_tokenizer.h"
#include "common/model/text/unigram_model.h"

namespace penstock {
namespace {

// Token texts are hostile input; this bounds what a table of them can cost.
constexpr size_t kMaxTokenBytes = 64 * 1024;

template <typename Model>
absl::StatusOr<std::unique_ptr<TokenModel>> CreateModel(
    const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model, Model::Create(vocabulary));
  return std::unique_ptr<TokenModel>(std::move(model));
}

struct Kind {
  absl::string_view model;
  bool scores;
  absl::StatusOr<std::unique_ptr<TokenModel>> (*create)(const Vocabulary&);
};

constexpr Kind kKinds[] = {
    {"gpt2", false, CreateModel<BpeModel>},
    {"bpe", false, CreateModel<BpeModel>},
    {"llama", true, CreateModel<BpeModel>},
    {"t5", true, CreateModel<UnigramModel>},
};

absl::Status CheckId(absl::string_view field, TokenId id, size_t size) {
  if (id >= 0 && static_cast<size_t>(id) < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " = ", id, " is not a token of a vocabulary of ", size));
}

absl::Status CheckOptionalId(absl::string_view field, TokenId id, size_t size) {
  return id == -1 ? absl::OkStatus() : CheckId(field, id, size);
}

absl::Status CheckMerges(const Vocabulary& vocabulary) {
  const size_t size = vocabulary.tokens.size();
  if (vocabulary.merges.size() >= size_t{1} << 30) {
    return absl::InvalidArgumentError("tokenizer.ggml.merges: too many");
  }
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const TokenMerge& merge = vocabulary.merges[i];
    const std::string field = absl::StrCat("tokenizer.ggml.merges[", i, "]");
    RETURN_IF_ERROR(CheckId(field, merge.left, size));
    RETURN_IF_ERROR(CheckId(field, merge.right, size));
    RETURN_IF_ERROR(CheckId(field, merge.result, size));
  }
  return absl::OkStatus();
}

absl::Status CheckScores(const Vocabulary& vocabulary) {
  if (vocabulary.scores.size() != vocabulary.tokens.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.ggml.scores: ", vocabulary.scores.size(),
                     " entries for ", vocabulary.tokens.size(), " tokens"));
  }
  for (size_t i = 0; i < vocabulary.scores.size(); ++i) {
    if (std::isfinite(vocabulary.scores[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.ggml.scores[", i, "] is not a finite number"));
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const Vocabulary& vocabulary) {
  const size_t size = vocabulary.tokens.size();
  if (size == 0 || size > size_t{1} << 30) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.ggml.tokens: a vocabulary of ", size));
  }
  if (vocabulary.kinds.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer.ggml.token_type: ", vocabulary.kinds.size(),
                     " entries for ", size, " tokens"));
  }
  for (size_t i = 0; i < size; ++i) {
    if (vocabulary.tokens[i].size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tokenizer.ggml.tokens[", i, "]: ", vocabulary.tokens[i].size(),
          " bytes, more than ", kMaxTokenBytes));
    }
  }
  RETURN_IF_ERROR(
      CheckOptionalId("tokenizer.ggml.bos_token_id", vocabulary.bos, size));
  RETURN_IF_ERROR(
      CheckOptionalId("tokenizer.ggml.eos_token_id", vocabulary.eos, size));
  RETURN_IF_ERROR(CheckOptionalId("tokenizer.ggml.unknown_token_id",
                                  vocabulary.unknown, size));
  if (vocabulary.use_unknown && vocabulary.unknown == -1) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.unknown_token_id is used and not set");
  }
  if (vocabulary.add_eos && vocabulary.eos == -1) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_eos_token is set without an eos_token_id");
  }
  if (vocabulary.add_bos && vocabulary.bos == -1) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_bos_token is set without a bos_token_id");
  }
  for (const TokenId id : vocabulary.stop_tokens) {
    RETURN_IF_ERROR(CheckId("stop token", id, size));
  }
  for (const TokenMatching& matching : vocabulary.matchings) {
    RETURN_IF_ERROR(CheckId("matching", matching.id, size));
  }
  return CheckMerges(vocabulary);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateOf(
    const Kind& kind, const Vocabulary& vocabulary) {
  RETURN_IF_ERROR(CheckVocabulary(vocabulary));
  if (kind.scores) RETURN_IF_ERROR(CheckScores(vocabulary));
  if (vocabulary.pre_tokenizer.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<TokenModel> model,
                     kind.create(vocabulary));
    return TextTokenizer::Create(vocabulary, vocabulary.normalizers,
                                 vocabulary.pre_tokenizers, std::move(model));
  }
  ASSIGN_OR_RETURN(const NamedPreTokenizer named,
                   FindPreTokenizer(vocabulary.pre_tokenizer));
  Vocabulary with_options = vocabulary;
  with_options.ignore_merges = named.ignore_merges;
  ASSIGN_OR_RETURN(std::unique_ptr<TokenModel> model,
                   kind.create(with_options));
  return TextTokenizer::Create(vocabulary, named.normalizers, named.steps,
                               std::move(model));
}

}  // namespace

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(
    absl::string_view text, SpecialTokens special) const {
  const TextRun run = {text, special};
  return EncodeRuns({&run, 1});
}

absl::StatusOr<std::string> DecodeBytes(const Tokenizer& tokenizer,
                                        absl::Span<const TokenId> ids,
                                        bool skip_special) {
  std::string bytes;
  bool first = true;  // no token has given text yet
  for (size_t i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(CheckId(absl::StrCat("ids[", i, "]"), ids[i],
                            static_cast<size_t>(tokenizer.vocab_size())));
    if (skip_special && tokenizer.IsSpecial(ids[i])) continue;
    const absl::string_view token = tokenizer.TokenBytes(ids[i]);
    bytes.append(token.data(), token.size());
    if (first && tokenizer.strip_first_space() && bytes[0] == ' ') {
      bytes.erase(0, 1);
    }
    first = first && token.empty();
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateTokenizer(
    const Vocabulary& vocabulary) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.model == vocabulary.model) return CreateOf(kind, vocabulary);
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind.model);
  }
  return absl::UnimplementedError(
      absl::StrCat("tokenizer.ggml.model: tokenizer '", vocabulary.model,
                   "' is not known to this build (known: ", known, ")"));
}

}  // namespace penstock
