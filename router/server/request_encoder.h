#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/model_file.h"
#include "common/model/generate_request.h"
#include "common/model/text/prompt_encoder.h"
#include "common/rpc/inference_wire.h"
#include "common/rpc/stream.h"

namespace penstock {

// From a client's bytes to a validated request with its prompt as tokens: all
// of the edge that computes. Immutable; safe from any thread.
class RequestEncoder {
 public:
  // Errors as PromptEncoder::Create.
  static absl::StatusOr<std::unique_ptr<RequestEncoder>> Create(
      const ModelFile& model, const std::string& model_name);

  // Errors carry a reason and, where one is to blame, a field. The model's name
  // is filled in; the id is not. The timeout is the shorter of the field's and
  // the call's, the client's request id the field's, else the call's.
  absl::StatusOr<ClientRequest> Encode(const CallInfo& call,
                                       absl::string_view bytes) const;
  // The same for a request that is decoded already.
  absl::StatusOr<ClientRequest> Encode(const CallInfo& call,
                                       ClientRequest client) const;

  // Token ids of a chat, or of a raw prompt; `begins`: with the token that the
  // model's prompts begin with.
  absl::StatusOr<std::vector<TokenId>> EncodeChat(const ChatInput& chat) const;
  absl::StatusOr<std::vector<TokenId>> EncodeText(absl::string_view text,
                                                  bool begins) const;
  // The text of token ids; an error names one of `field` that cannot be.
  absl::StatusOr<std::string> Decode(absl::Span<const TokenId> ids,
                                     absl::string_view field) const;

  // Whole methods, from request to response bytes.
  absl::StatusOr<std::string> Tokenize(absl::string_view bytes) const;
  absl::StatusOr<std::string> Detokenize(absl::string_view bytes) const;

  // kModelNotFound unless `name` is empty or the model that is served.
  absl::Status CheckModel(absl::string_view name) const;

  // What is known without the cluster.
  const ModelInfo& info() const { return info_; }
  const Tokenizer& tokenizer() const { return prompts_->tokenizer(); }

 private:
  RequestEncoder() = default;

  std::unique_ptr<PromptEncoder> prompts_;
  RequestLimits limits_;
  ModelInfo info_;
};

}  // namespace penstock
