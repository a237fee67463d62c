#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/text/client_request.h"
#include "common/model/token_frame.h"

namespace penstock {

// Messages between clients and the router, as bytes. Decoding checks form:
// errors carry a reason and the field's name. Ranges and the model's limits
// are checked later, with the tokens at hand.

// kPromptEmpty when there is none; kFieldNotImplemented names a field that is
// set but not built; kPromptNotUtf8.
absl::StatusOr<ClientRequest> DecodeGenerateRequest(absl::string_view bytes);

// kFieldNotImplemented that names the field.
absl::Status NotBuilt(absl::string_view field);

// What goes with the first frame.
struct ResponseHead {
  std::string request_id;
  std::string prefill;  // worker names
  std::string decode;
};
// `head` may be null.
std::string EncodeGenerateResponse(const TokenFrame& frame,
                                   const ResponseHead* head);

struct TokenizeInput {
  std::string model;
  std::variant<std::string, ChatInput> input;
  bool parse_special = true;
};
absl::StatusOr<TokenizeInput> DecodeTokenizeRequest(absl::string_view bytes);
std::string EncodeTokenizeResponse(const std::vector<TokenId>& ids);

struct DetokenizeInput {
  std::string model;
  std::vector<TokenId> ids;
};
absl::StatusOr<DetokenizeInput> DecodeDetokenizeRequest(
    absl::string_view bytes);
std::string EncodeDetokenizeResponse(const std::string& text);

// The model that a request for information names; empty: the one served.
absl::StatusOr<std::string> DecodeModelInfoRequest(absl::string_view bytes);
struct ModelInfo {
  std::string model;
  std::string architecture;
  ContentId content;
  int vocab_size = 0;
  int context_length = 0;
  int max_prompt_tokens = 0;
  std::vector<TokenId> stop_ids;
  bool has_chat_template = false;
  int prefill_workers = 0;
  int decode_workers = 0;
};
std::string EncodeModelInfoResponse(const ModelInfo& info);

// The request id to abort; never empty.
absl::StatusOr<std::string> DecodeAbortRequest(absl::string_view bytes);
std::string EncodeAbortResponse(int aborted);

}  // namespace penstock
