#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/text/chat_template.h"
#include "common/model/text/tokenizer.h"
#include "common/model/vocabulary.h"

namespace penstock {

// What is wrong with a prompt, and in which field of the request: "prompt",
// "messages", "messages[2].role", "messages[2].content",
// "messages[2].content[0].text", "messages[2].fields", "tools", "documents",
// "chat_template_kwargs" or "continue_final_message".
struct PromptError {
  enum class Kind {
    kEmpty,
    kTooLong,
    kNotUtf8,
    kInvalid,     // a role that cannot be, or what the template refuses
    kNoTemplate,  // the model has none, or one that this build does not know
  };
  Kind kind;
  std::string field;
};

// The error that a PromptEncoder attached; nullopt for any other status.
absl::optional<PromptError> PromptErrorOf(const absl::Status& status);

// From what a client gives to the token ids that a model reads: the one place
// that knows about a model's tokenizer, template and beginning-of-sequence
// token together. Immutable; safe from any thread.
class PromptEncoder {
 public:
  struct Options {
    size_t max_text_bytes = size_t{8} << 20;  // of all text of one prompt
    size_t max_messages = 4096;
    size_t max_role_bytes = 64;
  };

  // `chat_template` may be empty. A template that this build does not know
  // spoils chats only: see chat_status(). Errors as CreateTokenizer.
  static absl::StatusOr<std::unique_ptr<PromptEncoder>> Create(
      const Vocabulary& vocabulary, absl::string_view chat_template,
      const Options& options);
  static absl::StatusOr<std::unique_ptr<PromptEncoder>> Create(
      const Vocabulary& vocabulary, absl::string_view chat_template) {
    return Create(vocabulary, chat_template, Options());
  }

  // Ids of a raw prompt, with the beginning-of-sequence token first where the
  // model asks for it (and the text does not already give it), and so the
  // end-of-sequence token last. Errors carry a PromptError of field "prompt"
  // and begin with it.
  absl::StatusOr<std::vector<TokenId>> EncodeText(absl::string_view text,
                                                  SpecialTokens special) const;

  // Ids of a chat as the model's template writes it; text of messages never
  // becomes a special token. Errors carry a PromptError and begin with its
  // field: INVALID_ARGUMENT, or FAILED_PRECONDITION and UNIMPLEMENTED when
  // there is no template, or RESOURCE_EXHAUSTED when it does not end in time.
  absl::StatusOr<std::vector<TokenId>> EncodeChat(
      absl::Span<const ChatMessage> messages, const ChatOptions& options) const;

  // OK when chats can be encoded; for a line in the log at start-up.
  const absl::Status& chat_status() const { return chat_status_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  PromptEncoder(std::unique_ptr<Tokenizer> tokenizer, const Options& options)
      : tokenizer_(std::move(tokenizer)), options_(options) {}

  absl::Status CheckMessages(absl::Span<const ChatMessage> messages) const;
  absl::Status CheckSizes(absl::Span<const ChatMessage> messages,
                          const ChatOptions& options) const;

  const std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;  // null: see chat_status_
  absl::Status chat_status_;
  const Options options_;
};

}  // namespace penstock
