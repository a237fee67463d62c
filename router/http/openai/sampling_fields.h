#pragma once

#include "common/model/text/client_request.h"
#include "router/http/openai/body_fields.h"

namespace penstock {

// The fields that chats and completions share: how tokens are drawn, when an
// answer ends, how many there are. Errors are left in `fields`. Neither length
// nor logprobs, which the two spell differently.
ClientRequest ReadSharedFields(BodyFields& fields);

}  // namespace penstock
