#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/text/client_request.h"

namespace penstock {

// Bodies of OpenAI's API, and of the tokenizer calls that others added to it,
// as requests. Only form is checked; ranges and the model's limits are checked
// with the tokens at hand. A field that this server does not know is tolerated,
// one that it knows and cannot serve is refused (kFieldNotImplemented). Errors
// carry the field's name as the client spells it.

enum class AnswerKind { kChat, kCompletion };

// How an answer is to be written.
struct AnswerOptions {
  AnswerKind kind = AnswerKind::kChat;
  bool stream = false;
  bool include_usage = false;  // when streaming
  bool echo = false;           // the prompt goes before the answer's text
  bool logprobs = false;
  int top_logprobs = 0;  // alternatives shown for each token
  bool return_token_ids = false;
  bool score_only = false;       // none of what is generated is wanted
  bool prompt_logprobs = false;  // in a list of their own, not with `stream`
};

struct OpenAiRequest {
  // A completion may ask for several; a chat is one. Never empty.
  std::vector<PromptInput> prompts;
  // What all of them share; its prompt is empty.
  ClientRequest client;
  // The client said how long the answer may be.
  bool has_max_tokens = false;
  AnswerOptions answer;
};

absl::StatusOr<OpenAiRequest> ParseChatRequest(absl::string_view body);
absl::StatusOr<OpenAiRequest> ParseCompletionRequest(absl::string_view body);

struct TokenizeCall {
  std::string model;
  std::variant<std::string, ChatInput> input;
  // The text begins as a prompt does; chats say so in their template.
  bool add_special_tokens = true;
  bool return_token_texts = false;
};
absl::StatusOr<TokenizeCall> ParseTokenizeRequest(absl::string_view body);

struct DetokenizeCall {
  std::string model;
  std::vector<TokenId> ids;
};
absl::StatusOr<DetokenizeCall> ParseDetokenizeRequest(absl::string_view body);

}  // namespace penstock
