#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/text/tokenizer.h"

namespace penstock {

struct ChatMessage {
  std::string role;
  std::string content;
};

// A model's own chat template, parsed once. Immutable; safe from any thread.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;

  // Parses Jinja source. UNIMPLEMENTED names a construct this build does not
  // know, with its line; INVALID_ARGUMENT a syntax error.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(
      absl::string_view source);

  // A run of rendered text. Text that came out of a message stays apart from
  // what the template itself wrote, so that content never becomes a special
  // token.
  struct Piece {
    std::string text;
    bool from_message = false;
  };
  // Bounded in steps and output (RESOURCE_EXHAUSTED); raise_exception is
  // INVALID_ARGUMENT with the template's own words.
  virtual absl::StatusOr<std::vector<Piece>> Render(
      absl::Span<const ChatMessage> messages,
      bool add_generation_prompt) const = 0;
};

// The concatenation of all pieces.
std::string JoinPieces(absl::Span<const ChatTemplate::Piece> pieces);

// Token ids of a rendered chat: special tokens are parsed only in what the
// template wrote. Equal to encoding the joined text with kParse when no message
// spells a special token: BPE may merge across a piece boundary, so adjacent
// pieces are encoded as one text in which message ranges are barred from
// special-token parsing.
absl::StatusOr<std::vector<TokenId>> EncodePieces(
    absl::Span<const ChatTemplate::Piece> pieces, const Tokenizer& tokenizer);

}  // namespace penstock
