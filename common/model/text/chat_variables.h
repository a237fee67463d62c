#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/text/chat_template.h"
#include "common/model/text/jinja/evaluator.h"

namespace penstock {

// Written after the content that a rendering is to end with.
inline constexpr absl::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";

// What a template sees of a chat: messages, tools, documents,
// add_generation_prompt and the client's own variables. Parts of content stay
// a list when the template `takes_parts`. Text of all but known roles counts as
// text of messages. With continue_final_message, kContinueTag follows the last
// content. Errors as ChatTemplate::Render, with the field attached.
absl::StatusOr<jinja::Scopes::Variables> ChatVariables(
    absl::Span<const ChatMessage> messages, const ChatOptions& options,
    bool takes_parts);

}  // namespace penstock
