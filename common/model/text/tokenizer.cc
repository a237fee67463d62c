#include "common/model/text/tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/bpe_tokenizer.h"

namespace penstock {
namespace {

// Token texts are hostile input; this bounds what a table of them can cost.
constexpr size_t kMaxTokenBytes = 64 * 1024;

struct Kind {
  absl::string_view model;
  absl::StatusOr<std::unique_ptr<Tokenizer>> (*create)(const Vocabulary&);
};

constexpr Kind kKinds[] = {
    {"gpt2", CreateBpeTokenizer},
};

absl::Status CheckId(absl::string_view field, TokenId id, size_t size) {
  if (id >= 0 && static_cast<size_t>(id) < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " = ", id, " is not a token of a vocabulary of ", size));
}

absl::Status CheckOptionalId(absl::string_view field, TokenId id, size_t size) {
  return id == -1 ? absl::OkStatus() : CheckId(field, id, size);
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
  if (vocabulary.add_bos && vocabulary.bos == -1) {
    return absl::InvalidArgumentError(
        "tokenizer.ggml.add_bos_token is set without a bos_token_id");
  }
  for (const TokenId id : vocabulary.stop_tokens) {
    RETURN_IF_ERROR(CheckId("stop token", id, size));
  }
  return absl::OkStatus();
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
  for (size_t i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(CheckId(absl::StrCat("ids[", i, "]"), ids[i],
                            static_cast<size_t>(tokenizer.vocab_size())));
    if (skip_special && tokenizer.IsSpecial(ids[i])) continue;
    const absl::string_view token = tokenizer.TokenBytes(ids[i]);
    bytes.append(token.data(), token.size());
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateTokenizer(
    const Vocabulary& vocabulary) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.model == vocabulary.model) {
      RETURN_IF_ERROR(CheckVocabulary(vocabulary));
      return kind.create(vocabulary);
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind.model);
  }
  return absl::UnimplementedError(
      absl::StrCat("tokenizer.ggml.model: tokenizer '", vocabulary.model,
                   "' is not known to this build (known: ", known, ")"));
}

}  // namespace penstock
