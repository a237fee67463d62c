#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/vocabulary.h"

namespace penstock {

enum class SpecialTokens {
  kParse,  // text that spells a special token becomes it
  kPlain,  // text stays text: what untrusted content gets
};

// Text to token ids and back. Immutable after Create; safe from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Never adds a beginning-of-sequence token on its own. INVALID_ARGUMENT when
  // `text` is not UTF-8 (naming the byte offset).
  virtual absl::StatusOr<std::vector<TokenId>> Encode(
      absl::string_view text, SpecialTokens special) const = 0;

  // The bytes of one token. Special tokens give their text. Precondition: the
  // id is within the vocabulary. The view lives as long as the tokenizer.
  virtual absl::string_view TokenBytes(TokenId id) const = 0;

  virtual bool IsSpecial(TokenId id) const = 0;
  virtual int vocab_size() const = 0;
  // Ids that end a generation.
  virtual const std::vector<TokenId>& stop_tokens() const = 0;
};

// UNIMPLEMENTED names a tokenizer model or pre-tokenizer that is not known;
// INVALID_ARGUMENT a vocabulary that contradicts itself.
absl::StatusOr<std::unique_ptr<Tokenizer>> CreateTokenizer(
    const Vocabulary& vocabulary);

}  // namespace penstock
