#pragma once

#include <string>
#include <variant>
#include <vector>

#include "common/base/id.h"
#include "common/model/generate_request.h"
#include "common/model/text/chat_template.h"

namespace penstock {

struct ChatInput {
  std::vector<ChatMessage> messages;
  ChatOptions options;
};
using PromptInput = std::variant<std::string, ChatInput, std::vector<TokenId>>;

// What a client asked for, whichever way it came: in form, but not yet checked
// against the model and its limits.
struct ClientRequest {
  PromptInput prompt;
  // Everything but the id and the prompt's tokens. `timeout` is the field's.
  GenerateRequest request;
  bool has_seed = false;
  std::string traceparent;
};

}  // namespace penstock
