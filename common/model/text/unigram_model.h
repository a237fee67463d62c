#pragma once

#include <array>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/text_trie.h"
#include "common/model/text/token_model.h"
#include "common/model/vocabulary.h"

namespace penstock {

// SentencePiece's unigram model: of all ways to cut a piece into tokens the one
// of the highest sum of scores. Work is linear in the piece, for a vocabulary
// of tokens of bounded length.
class UnigramModel : public TokenModel {
 public:
  // Precondition: sizes and ids of the vocabulary were checked
  // (CreateTokenizer does). INVALID_ARGUMENT: a token that is too long, or no
  // unknown token although one is used.
  static absl::StatusOr<std::unique_ptr<UnigramModel>> Create(
      const Vocabulary& vocabulary);

  std::unique_ptr<TokenModel::Session> NewSession(
      size_t text_bytes) const override;

 private:
  class Session;

  explicit UnigramModel(const Vocabulary& vocabulary);

  TextTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  TokenId unknown_;  // -1: what has no token vanishes
  const bool byte_fallback_;
  const bool fuse_unknown_;
  std::array<TokenId, 256> byte_tokens_;  // or -1
};

}  // namespace penstock
