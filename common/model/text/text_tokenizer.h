#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/text/added_tokens.h"
#include "common/model/text/pre_tokenizer.h"
#include "common/model/text/text_normalizer.h"
#include "common/model/text/token_model.h"
#include "common/model/text/tokenizer.h"
#include "common/model/vocabulary.h"

namespace penstock {

// A tokenizer of the usual build: control and user-defined tokens are found
// first; the text between them is normalised, cut into pieces, and each piece
// goes to the model.
class TextTokenizer : public Tokenizer {
 public:
  // Precondition: sizes and ids of the vocabulary were checked
  // (CreateTokenizer does), and `model` is made of it. Errors as
  // CreateTokenizer's.
  static absl::StatusOr<std::unique_ptr<TextTokenizer>> Create(
      const Vocabulary& vocabulary,
      absl::Span<const NormalizerStep> normalizers,
      absl::Span<const PreTokenizerStep> pre_tokenizers,
      std::unique_ptr<TokenModel> model);

  absl::StatusOr<std::vector<TokenId>> EncodeRuns(
      absl::Span<const TextRun> runs) const override;
  absl::string_view TokenBytes(TokenId id) const override;
  bool IsSpecial(TokenId id) const override;
  int vocab_size() const override { return static_cast<int>(tokens_.size()); }
  const std::vector<TokenId>& stop_tokens() const override {
    return stop_tokens_;
  }
  TokenId bos() const override { return bos_; }
  TokenId eos() const override { return eos_; }
  bool add_bos() const override { return add_bos_; }
  bool add_eos() const override { return add_eos_; }
  bool strip_first_space() const override { return strip_first_space_; }

 private:
  struct Token {
    std::string bytes;
    bool special = false;
  };

  TextTokenizer(TextNormalizer normalizer, PreTokenizer pre_tokenizer,
                std::unique_ptr<TokenModel> model)
      : normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        model_(std::move(model)) {}

  absl::Status AddTokens(const Vocabulary& vocabulary);
  absl::Status Seek(const std::string& text, const TokenMatching& matching,
                    bool special);

  // The state of one call.
  class Encoding;

  TextNormalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<TokenModel> model_;
  std::vector<Token> tokens_;
  AddedTokens added_;             // sought in text as it comes
  AddedTokens normalized_added_;  // sought in normalised text
  std::vector<TokenId> stop_tokens_;
  TokenId bos_ = -1;
  TokenId eos_ = -1;
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool strip_first_space_ = false;
};

}  // namespace penstock
