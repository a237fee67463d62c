#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/client_request.h"
#include "common/rpc/stream.h"
#include "router/http/openai/answer_writer.h"
#include "router/http/openai/openai_request.h"
#include "router/server/request_encoder.h"

namespace penstock {

// What a call to /v1/chat/completions or /v1/completions comes to.
struct HttpJob {
  std::vector<ClientRequest> requests;  // one for each prompt
  AnswerWriter::Options answer;
};

// From a body to requests with their prompts as tokens. Errors carry a reason
// and a field. An answer without a length of its own may fill the context.
absl::StatusOr<HttpJob> EncodeHttpJob(const RequestEncoder& encoder,
                                      AnswerKind kind, const CallInfo& call,
                                      const std::string& tenant,
                                      absl::string_view body);

}  // namespace penstock
