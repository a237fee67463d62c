#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/bpe_merger.h"
#include "common/model/text/token_model.h"
#include "common/model/text/word_table.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Byte pair encoding, of three kinds: of bytes in GPT-2's alphabet by merges
// ("gpt2"), of characters by merges ("bpe"), and SentencePiece's, of characters
// by the scores of what merges make ("llama").
class BpeModel : public TokenModel {
 public:
  // Precondition: sizes and ids of the vocabulary were checked
  // (CreateTokenizer does). INVALID_ARGUMENT: a token twice, or longer than
  // SentencePiece makes them.
  static absl::StatusOr<std::unique_ptr<BpeModel>> Create(
      const Vocabulary& vocabulary);

  std::unique_ptr<TokenModel::Session> NewSession(
      size_t text_bytes) const override;

 private:
  class Session;
  using TokenIds = absl::flat_hash_map<absl::string_view, TokenId>;

  explicit BpeModel(const Vocabulary& vocabulary);

  // A character that is no token, in the work of SentencePiece: past all ids.
  TokenId Stranger(char32_t character) const {
    return vocab_size_ + static_cast<TokenId>(character);
  }
  void IndexSymbols(const Vocabulary& vocabulary, const TokenIds& ids);
  std::vector<BpeMerger::Rule> RulesOfScores(const Vocabulary& vocabulary,
                                             const TokenIds& ids) const;
  // The token that a part of a longer token is by itself, or what stands for
  // its one character; -1: neither.
  TokenId PartId(absl::string_view part, const TokenIds& ids) const;
  void IndexWords(const Vocabulary& vocabulary);
  void FindWhetherSpacesCut(const Vocabulary& vocabulary);

  const bool bytes_;      // symbols are bytes, else characters
  const bool by_scores_;  // merges run before strangers become bytes
  const TokenId vocab_size_;
  const bool ignore_merges_;
  const TokenId unknown_;  // -1: what has no token vanishes
  const bool fuse_unknown_;
  bool byte_fallback_;
  // U+2581 begins a word: no merge reaches across what comes before it.
  bool spaces_cut_ = false;
  std::unique_ptr<const BpeMerger> merger_;
  std::array<TokenId, 256> byte_ids_;     // the symbol of a byte, or -1
  std::array<TokenId, 256> byte_tokens_;  // <0x00> to <0xFF>, or -1
  absl::flat_hash_map<char32_t, TokenId> characters_;
  std::array<TokenId, 128> ascii_;  // the same for those below 128, or -1
  WordTable words_;
};

}  // namespace penstock
