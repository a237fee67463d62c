#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "router/http/openai/json_body.h"
#include "router/http/openai/openai_request.h"

namespace penstock {

// An error as OpenAI's clients read it.
struct HttpError {
  int status = 500;
  ApiJson body;  // {"error": {"message", "type", "param", "code"}}
  absl::Duration retry_after;  // zero: no advice
  // Clients try again by themselves after some statuses; this says whether
  // that can help.
  bool retry_helps = false;
};

// `kind` says how the request's fields are spelt.
HttpError ToHttpError(const absl::Status& status, AnswerKind kind);

// One that is HTTP's own: a path, a method, a size.
HttpError PlainHttpError(int status, absl::string_view message,
                         absl::string_view code);

}  // namespace penstock
