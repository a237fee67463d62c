#include "common/rpc/inference_wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "common/rpc/frame_proto.h"
#include "common/rpc/sampling_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/inference.pb.h"

namespace penstock {
namespace {

ChatInput FromProto(v1::ChatMessages* proto) {
  ChatInput chat;
  for (v1::ChatMessage& message : *proto->mutable_messages()) {
    chat.messages.push_back({std::move(*message.mutable_role()),
                             std::move(*message.mutable_content())});
  }
  if (proto->has_add_generation_prompt()) {
    chat.options.add_generation_prompt = proto->add_generation_prompt();
  }
  return chat;
}

absl::Status EmptyPrompt(absl::string_view field) {
  return MakeError(
      ErrorReason::kPromptEmpty,
      absl::StrCat(field, " is empty; give text, messages or token ids"),
      field);
}

absl::StatusOr<PromptInput> DecodePrompt(v1::GenerateRequest* proto) {
  switch (proto->prompt_case()) {
    case v1::GenerateRequest::kText:
      if (proto->text().empty()) return EmptyPrompt("text");
      return std::move(*proto->mutable_text());
    case v1::GenerateRequest::kMessages:
      if (proto->messages().messages().empty()) return EmptyPrompt("messages");
      return FromProto(proto->mutable_messages());
    case v1::GenerateRequest::kIds: {
      if (proto->ids().ids().empty()) return EmptyPrompt("ids");
      const auto& ids = proto->ids().ids();
      return std::vector<TokenId>(ids.begin(), ids.end());
    }
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return EmptyPrompt("prompt");
}

absl::Status RefuseFieldsThatAreNotBuilt(const v1::GenerateRequest& proto) {
  if (proto.has_return_ids() && !proto.return_ids()) {
    return NotBuilt("return_ids");
  }
  if (proto.has_adapter()) return NotBuilt("adapter");
  if (proto.has_constraint()) return NotBuilt("constraint");
  return absl::OkStatus();
}

absl::Status CheckShort(absl::string_view field, absl::string_view value) {
  return value.empty() ? absl::OkStatus() : CheckName(field, value);
}

absl::Status DecodeAnswers(const v1::GenerateRequest& proto,
                           GenerateRequest& request) {
  if (proto.has_n()) request.n = proto.n();
  if (proto.has_best_of()) {
    // The domain's 0 is what a client says by leaving it out.
    if (proto.best_of() < 1) {
      return Refuse("best_of", absl::StrCat("is ", proto.best_of(),
                                            "; it must be n or more, or "
                                            "absent"));
    }
    request.best_of = proto.best_of();
  }
  if (proto.has_beam()) {
    ASSIGN_OR_RETURN(request.beam, penstock::FromProto(proto.beam()));
  }
  if (proto.has_prompt_logprobs()) {
    if (proto.prompt_logprobs() < 0) {
      return Refuse("prompt_logprobs",
                    absl::StrCat("is ", proto.prompt_logprobs(),
                                 "; it must be 0 or more, or absent"));
    }
    request.prompt_logprobs = proto.prompt_logprobs();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NotBuilt(absl::string_view field) {
  return MakeError(
      ErrorReason::kFieldNotImplemented,
      absl::StrCat(field, " is not implemented in this version; leave it out"),
      field);
}

absl::StatusOr<ClientRequest> DecodeGenerateRequest(absl::string_view bytes) {
  v1::GenerateRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  RETURN_IF_ERROR(RefuseFieldsThatAreNotBuilt(proto));
  ClientRequest client;
  ASSIGN_OR_RETURN(client.prompt, DecodePrompt(&proto));
  GenerateRequest& request = client.request;
  RETURN_IF_ERROR(CheckShort("model", proto.model()));
  request.model = proto.model();
  client.has_seed = proto.sampling().has_seed();
  ASSIGN_OR_RETURN(request.sampling, FromProto(proto.sampling()));
  ASSIGN_OR_RETURN(request.stop, FromProto(std::move(*proto.mutable_stop())));
  RETURN_IF_ERROR(DecodeAnswers(proto, request));
  RETURN_IF_ERROR(CheckShort("tenant", proto.tenant()));
  request.tenant = proto.tenant();
  RETURN_IF_ERROR(CheckShort("cache_salt", proto.cache_salt()));
  request.cache_salt = proto.cache_salt();
  RETURN_IF_ERROR(CheckShort("session_id", proto.session_id()));
  request.session = proto.session_id();
  request.priority = proto.priority();
  RETURN_IF_ERROR(CheckShort("request_id", proto.request_id()));
  request.client_request_id = proto.request_id();
  RETURN_IF_ERROR(CheckShort("traceparent", proto.traceparent()));
  client.traceparent = proto.traceparent();
  if (proto.has_timeout_ms()) {
    if (proto.timeout_ms() == 0) {
      return Refuse("timeout_ms", "is 0; it must be 1 or more, or absent");
    }
    // What is longer than any cap is as good as the longest.
    const auto most =
        static_cast<uint64_t>(absl::ToInt64Milliseconds(kMaxWireDuration));
    request.timeout = absl::Milliseconds(std::min(proto.timeout_ms(), most));
  }
  return client;
}

std::string EncodeGenerateResponse(const TokenFrame& frame,
                                   const ResponseHead* head) {
  v1::GenerateResponse proto;
  *proto.mutable_frame() = ToProto(frame);
  if (head != nullptr) {
    proto.mutable_placement()->set_prefill(head->prefill);
    proto.mutable_placement()->set_decode(head->decode);
    proto.set_request_id(head->request_id);
  }
  return proto.SerializeAsString();
}

absl::StatusOr<TokenizeInput> DecodeTokenizeRequest(absl::string_view bytes) {
  v1::TokenizeRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  TokenizeInput input;
  input.model = proto.model();
  if (proto.has_parse_special()) input.parse_special = proto.parse_special();
  if (proto.has_messages()) {
    if (proto.messages().messages().empty()) return EmptyPrompt("messages");
    input.input = FromProto(proto.mutable_messages());
  } else {
    input.input = std::move(*proto.mutable_text());
  }
  return input;
}

std::string EncodeTokenizeResponse(const std::vector<TokenId>& ids) {
  v1::TokenizeResponse proto;
  proto.mutable_ids()->Add(ids.begin(), ids.end());
  return proto.SerializeAsString();
}

absl::StatusOr<DetokenizeInput> DecodeDetokenizeRequest(
    absl::string_view bytes) {
  v1::DetokenizeRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  return DetokenizeInput{proto.model(),
                         {proto.ids().begin(), proto.ids().end()}};
}

std::string EncodeDetokenizeResponse(const std::string& text) {
  v1::DetokenizeResponse proto;
  proto.set_text(text);
  return proto.SerializeAsString();
}

absl::StatusOr<std::string> DecodeModelInfoRequest(absl::string_view bytes) {
  v1::GetModelInfoRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  return proto.model();
}

std::string EncodeModelInfoResponse(const ModelInfo& info) {
  v1::GetModelInfoResponse proto;
  proto.set_model(info.model);
  proto.set_architecture(info.architecture);
  proto.set_content_id(info.content.value());
  proto.set_vocab_size(info.vocab_size);
  proto.set_context_length(info.context_length);
  proto.set_max_prompt_tokens(info.max_prompt_tokens);
  proto.mutable_stop_ids()->Add(info.stop_ids.begin(), info.stop_ids.end());
  proto.set_has_chat_template(info.has_chat_template);
  proto.set_prefill_workers(info.prefill_workers);
  proto.set_decode_workers(info.decode_workers);
  return proto.SerializeAsString();
}

absl::StatusOr<std::string> DecodeAbortRequest(absl::string_view bytes) {
  v1::AbortRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  RETURN_IF_ERROR(CheckName("request_id", proto.request_id()));
  return proto.request_id();
}

std::string EncodeAbortResponse(int aborted) {
  v1::AbortResponse proto;
  proto.set_aborted(aborted);
  return proto.SerializeAsString();
}

}  // namespace penstock
