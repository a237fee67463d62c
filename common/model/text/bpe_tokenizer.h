#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/bpe_merger.h"
#include "common/model/text/pre_tokenizer.h"
#include "common/model/text/text_trie.h"
#include "common/model/text/tokenizer.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Byte-level byte pair encoding, as GPT-2 and its many heirs use it. A byte
// that has no token vanishes before the merges run, as in the tokenizers that
// such vocabularies were trained with.
class BpeTokenizer : public Tokenizer {
 public:
  // Precondition: sizes and ids of the vocabulary were checked
  // (CreateTokenizer does). Errors as CreateTokenizer's.
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Create(
      const Vocabulary& vocabulary);

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

 private:
  struct Token {
    std::string bytes;
    bool special = false;
  };

  BpeTokenizer(PreTokenizer pre_tokenizer, BpeMerger merger)
      : pre_tokenizer_(std::move(pre_tokenizer)), merger_(std::move(merger)) {}

  // The state of one call.
  class Encoding;

  PreTokenizer pre_tokenizer_;
  BpeMerger merger_;
  std::vector<Token> tokens_;
  std::array<TokenId, 256> byte_ids_;  // -1: the byte has no token
  TextTrie special_;                   // control and user-defined tokens
  TextTrie user_defined_;
  std::vector<TokenId> stop_tokens_;
  TokenId bos_ = -1;
  TokenId eos_ = -1;
  bool add_bos_ = false;
};

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateBpeTokenizer(
    const Vocabulary& vocabulary);

}  // namespace penstock
