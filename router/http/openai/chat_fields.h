#pragma once

#include "common/model/text/client_request.h"
#include "router/http/openai/body_fields.h"

namespace penstock {

// The messages of a chat and what says how they are written as a prompt. An
// error is left in `fields`.
ChatInput ReadChat(BodyFields& fields);

}  // namespace penstock
