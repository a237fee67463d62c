#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/text/civil_time.h"
#include "common/model/text/tokenizer.h"

namespace penstock {

// One message of a chat, as a client gave it. Texts are UTF-8.
struct ChatMessage {
  std::string role = {};
  std::string content = {};
  // Text parts in place of `content`, which is then empty. A template that
  // reads lists of parts gets [{"type": "text", "text": ...}, ...]; any other
  // gets the parts joined with newlines.
  std::vector<std::string> parts = {};
  // The client said null, as it may beside tool calls.
  bool null_content = false;
  // All else of the message (name, tool_calls, tool_call_id, ...) as the text
  // of a JSON object; empty: nothing. Without "role" and "content".
  std::string fields = {};
};

// What a client says about a rendering beside its messages; JSON as text, so
// that keys keep the client's order. Empty: not given.
struct ChatOptions {
  // The text ends where the assistant's turn begins.
  bool add_generation_prompt = true;
  // The text ends where the last message's content does, so that the answer
  // goes on from there. Not together with add_generation_prompt.
  bool continue_final_message = false;
  std::string tools = {};      // a JSON array of objects
  std::string documents = {};  // a JSON array of objects
  // A JSON object: more variables for the template (enable_thinking, ...), the
  // API's chat_template_kwargs.
  std::string kwargs = {};
  // What strftime_now tells; nullopt: templates find no such function.
  absl::optional<CivilTime> now = {};
};

// A model's own chat template, parsed once. Immutable; safe from any thread.
class ChatTemplate {
 public:
  // Texts of special tokens that templates speak of; empty: undefined there.
  struct SpecialTexts {
    std::string bos_token;
    std::string eos_token;
  };

  virtual ~ChatTemplate() = default;

  // Parses Jinja source. UNIMPLEMENTED names a construct this build does not
  // know, with its line; INVALID_ARGUMENT a syntax error; RESOURCE_EXHAUSTED a
  // template that is too long or nested too deep.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(
      absl::string_view source, SpecialTexts special);
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(
      absl::string_view source) {
    return Parse(source, SpecialTexts());
  }

  // A run of rendered text. Text that came out of a message stays apart from
  // what the template itself wrote, so that content never becomes a special
  // token. The role of a message counts as the template's when it is one of
  // IsKnownRole: templates make special tokens out of those ('<|' + role +
  // '|>').
  struct Piece {
    std::string text;
    bool from_message = false;
  };
  // No piece is empty and neighbours differ in from_message. Bounded in steps
  // and output (RESOURCE_EXHAUSTED). INVALID_ARGUMENT: a message or option is
  // not UTF-8 or not the JSON it should be (naming it), raise_exception with
  // the template's own words, or an operation that the messages make
  // impossible; UNIMPLEMENTED as Parse, for constructs that show only when they
  // run.
  virtual absl::StatusOr<std::vector<Piece>> Render(
      absl::Span<const ChatMessage> messages,
      const ChatOptions& options) const = 0;
};

// The option or message field that an error of Render is about, with which its
// message begins ("tools", "messages[2].fields"); empty when it is about none.
std::string ChatFieldOf(const absl::Status& status);

// system, user, assistant, tool and the like.
bool IsKnownRole(absl::string_view role);

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
