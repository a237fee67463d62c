#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/vocabulary.h"

namespace penstock {

enum class SpecialTokens {
  kParse,  // text that spells a special token becomes it
  kPlain,  // text stays text: what untrusted content gets
};

// A part of a longer text and how it is to be read.
struct TextRun {
  absl::string_view text;
  SpecialTokens special = SpecialTokens::kPlain;
};

// Text to token ids and back. Immutable once created; safe from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Token ids of the concatenation of `runs`. A special token is recognised
  // only inside adjacent kParse runs, while ordinary tokens may reach across
  // runs. Tokens that a vocabulary marks as user-defined are text with an id of
  // its own: they are recognised in either mode, within adjacent runs of one
  // mode. Never adds a beginning-of-sequence token on its own.
  // INVALID_ARGUMENT when the concatenation is not UTF-8 (naming the byte
  // offset) or over kMaxTextBytes; RESOURCE_EXHAUSTED when it cannot be split
  // within the bounds of the pre-tokenizer.
  virtual absl::StatusOr<std::vector<TokenId>> EncodeRuns(
      absl::Span<const TextRun> runs) const = 0;

  // EncodeRuns of a single run.
  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text,
                                              SpecialTokens special) const;

  // The bytes of one token. Special tokens give their text. Precondition: the
  // id is within the vocabulary. The view lives as long as the tokenizer.
  virtual absl::string_view TokenBytes(TokenId id) const = 0;

  // Control tokens: in no text that a client sees. Precondition: the id is
  // within the vocabulary.
  virtual bool IsSpecial(TokenId id) const = 0;
  virtual int vocab_size() const = 0;
  // Ids that end a generation.
  virtual const std::vector<TokenId>& stop_tokens() const = 0;

  // -1: the vocabulary has none.
  virtual TokenId bos() const = 0;
  virtual TokenId eos() const = 0;
  // Whether a raw prompt begins with bos(); the caller adds it.
  virtual bool add_bos() const = 0;
  // Whether a raw prompt ends with eos(); the caller adds it.
  virtual bool add_eos() const { return false; }
  // Whether the space that the first token of a whole text begins with is not
  // part of the text: SentencePiece puts one in front of every text.
  virtual bool strip_first_space() const { return false; }
};

inline constexpr size_t kMaxTextBytes = size_t{1} << 28;

// The bytes of `ids`, a whole text, one after the other, which need not be
// UTF-8. With `skip_special`, special tokens give nothing. INVALID_ARGUMENT
// names an id that the vocabulary does not have and its index.
absl::StatusOr<std::string> DecodeBytes(const Tokenizer& tokenizer,
                                        absl::Span<const TokenId> ids,
                                        bool skip_special);

// UNIMPLEMENTED names a tokenizer model or pre-tokenizer that is not known;
// INVALID_ARGUMENT a vocabulary that contradicts itself.
absl::StatusOr<std::unique_ptr<Tokenizer>> CreateTokenizer(
    const Vocabulary& vocabulary);

}  // namespace penstock
