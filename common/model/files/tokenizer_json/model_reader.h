#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/model/files/tokenizer_json/json_value.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Reads the members "model" and "added_tokens" of a tokenizer.json into a
// vocabulary: tokens, kinds, scores, merges and how added tokens match.
class ModelReader {
 public:
  // Both must outlive it.
  ModelReader(const JsonValue& file, Vocabulary& vocabulary)
      : file_(file), model_(file.Member("model")), vocabulary_(vocabulary) {}

  // `byte_level`: whether pieces come in GPT-2's alphabet. UNIMPLEMENTED names
  // a model or an option of it that is not known; INVALID_ARGUMENT what is
  // wrong where.
  absl::Status Read(bool byte_level);

  // After Read: the token of that text; -1 when there is none.
  TokenId Find(const std::string& text) const;

 private:
  absl::Status ReadBpe(bool byte_level);
  absl::Status CheckBpeOptions() const;
  absl::Status ReadBpeTokens();
  absl::Status ReadMerges();
  absl::StatusOr<TokenId> MergePart(const JsonValue& merge,
                                    const std::string& text) const;
  absl::Status ReadUnigram();
  absl::Status ReadAddedTokens();
  absl::Status AddToken(const JsonValue& token);
  // Gives `text` the id, which may lie past those so far.
  absl::Status Place(const JsonValue& where, const std::string& text,
                     int64_t id);
  void MarkByteTokens();

  const JsonValue& file_;
  const JsonValue model_;
  Vocabulary& vocabulary_;
  absl::flat_hash_map<std::string, TokenId> ids_;
};

}  // namespace penstock
