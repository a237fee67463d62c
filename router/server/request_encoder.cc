#include "router/server/request_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/model/text/text_stream.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

ErrorReason ReasonOf(PromptError::Kind kind) {
  switch (kind) {
    case PromptError::Kind::kEmpty:
      return ErrorReason::kPromptEmpty;
    case PromptError::Kind::kTooLong:
      return ErrorReason::kPromptTooLong;
    case PromptError::Kind::kNotUtf8:
      return ErrorReason::kPromptNotUtf8;
    case PromptError::Kind::kInvalid:
      return ErrorReason::kInvalidField;
    case PromptError::Kind::kNoTemplate:
      return ErrorReason::kFieldNotImplemented;
  }
  return ErrorReason::kInvalidField;
}

// A prompt encoder's error as one of the API's.
absl::Status FromPrompt(const absl::Status& status) {
  const auto error = PromptErrorOf(status);
  if (!error.has_value()) return status;
  return MakeError(ReasonOf(error->kind), status.message(), error->field);
}

// Validate's messages begin with the field: "sampling.top_p is 2; ...".
absl::Status FromValidate(const absl::Status& status) {
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  return MakeError(ErrorReason::kInvalidField, message,
                   message.substr(0, message.find(' ')));
}

// Templates may tell the date.
CivilTime LocalNow() {
  const absl::CivilSecond now =
      absl::ToCivilSecond(absl::Now(), absl::LocalTimeZone());
  return {static_cast<int>(now.year()),
          now.month(),
          now.day(),
          now.hour(),
          now.minute(),
          now.second()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestEncoder>> RequestEncoder::Create(
    const ModelFile& model, const std::string& model_name) {
  auto encoder = std::unique_ptr<RequestEncoder>(new RequestEncoder);
  ASSIGN_OR_RETURN(
      encoder->prompts_,
      PromptEncoder::Create(model.vocabulary(), model.chat_template()));
  const PromptEncoder& prompts = *encoder->prompts_;
  if (!prompts.chat_status().ok()) {
    Log(LogLevel::kWarning, "the model cannot chat",
        {{"why", std::string(prompts.chat_status().message())}});
  }
  const ModelSpec& spec = model.spec();
  encoder->limits_.context_length = spec.context_length;
  encoder->limits_.max_prompt_tokens = spec.context_length - 1;
  encoder->limits_.vocab_size = spec.vocab_size;
  ModelInfo& info = encoder->info_;
  info.model = model_name;
  info.architecture = spec.architecture;
  info.content = spec.content;
  info.vocab_size = spec.vocab_size;
  info.context_length = spec.context_length;
  info.max_prompt_tokens = encoder->limits_.max_prompt_tokens;
  info.stop_ids = prompts.tokenizer().stop_tokens();
  info.has_chat_template = prompts.chat_status().ok();
  return encoder;
}

absl::Status RequestEncoder::CheckModel(absl::string_view name) const {
  if (name.empty() || name == info_.model) return absl::OkStatus();
  return MakeError(ErrorReason::kModelNotFound,
                   absl::StrCat("model \"", name, "\" is not served here; \"",
                                info_.model, "\" is"),
                   "model");
}

absl::StatusOr<std::vector<TokenId>> RequestEncoder::EncodeChat(
    const ChatInput& chat) const {
  ChatOptions options = chat.options;
  if (!options.now.has_value()) options.now = LocalNow();
  auto ids = prompts_->EncodeChat(chat.messages, options);
  if (!ids.ok()) return FromPrompt(ids.status());
  return ids;
}

absl::StatusOr<std::vector<TokenId>> RequestEncoder::EncodeText(
    absl::string_view text, bool begins) const {
  if (begins) {
    auto ids = prompts_->EncodeText(text, SpecialTokens::kParse);
    if (!ids.ok()) return FromPrompt(ids.status());
    return ids;
  }
  auto ids = tokenizer().Encode(text, SpecialTokens::kParse);
  if (!ids.ok()) {
    return MakeError(ErrorReason::kPromptNotUtf8, ids.status().message(),
                     "prompt");
  }
  return ids;
}

absl::StatusOr<std::string> RequestEncoder::Decode(
    absl::Span<const TokenId> ids, absl::string_view field) const {
  Utf8Assembler assembler;
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= tokenizer().vocab_size()) {
      const std::string element = absl::StrCat(field, "[", i, "]");
      return MakeError(
          ErrorReason::kInvalidField,
          absl::StrCat(element, " is ", ids[i], "; it must be in [0, ",
                       tokenizer().vocab_size(), ")"),
          element);
    }
    text += assembler.Push(tokenizer().TokenBytes(ids[i]));
  }
  return text + assembler.Flush();
}

absl::StatusOr<ClientRequest> RequestEncoder::Encode(
    const CallInfo& call, absl::string_view bytes) const {
  ASSIGN_OR_RETURN(ClientRequest client, DecodeGenerateRequest(bytes));
  return Encode(call, std::move(client));
}

absl::StatusOr<ClientRequest> RequestEncoder::Encode(
    const CallInfo& call, ClientRequest client) const {
  GenerateRequest& request = client.request;
  RETURN_IF_ERROR(CheckModel(request.model));
  request.model = info_.model;
  if (auto* text = std::get_if<std::string>(&client.prompt)) {
    ASSIGN_OR_RETURN(request.prompt, EncodeText(*text, /*begins=*/true));
  } else if (auto* chat = std::get_if<ChatInput>(&client.prompt)) {
    ASSIGN_OR_RETURN(request.prompt, EncodeChat(*chat));
  } else {
    request.prompt = std::get<std::vector<TokenId>>(std::move(client.prompt));
  }
  if (static_cast<int64_t>(request.prompt.size()) > limits_.max_prompt_tokens) {
    return MakeError(
        ErrorReason::kPromptTooLong,
        absl::StrCat("prompt has ", request.prompt.size(),
                     " tokens; the model takes at most ",
                     limits_.max_prompt_tokens, " (its context is ",
                     limits_.context_length, "); send a shorter one"),
        "prompt");
  }
  RETURN_IF_ERROR(FromValidate(Validate(request, limits_)));
  request.timeout = std::min(request.timeout, call.timeout);
  if (request.client_request_id.empty()) {
    request.client_request_id = call.request_id;
  }
  if (client.traceparent.empty()) client.traceparent = call.traceparent;
  return client;
}

absl::StatusOr<std::string> RequestEncoder::Tokenize(
    absl::string_view bytes) const {
  ASSIGN_OR_RETURN(TokenizeInput input, DecodeTokenizeRequest(bytes));
  RETURN_IF_ERROR(CheckModel(input.model));
  if (auto* chat = std::get_if<ChatInput>(&input.input)) {
    ASSIGN_OR_RETURN(std::vector<TokenId> ids, EncodeChat(*chat));
    return EncodeTokenizeResponse(ids);
  }
  const auto ids = prompts_->tokenizer().Encode(
      std::get<std::string>(input.input),
      input.parse_special ? SpecialTokens::kParse : SpecialTokens::kPlain);
  if (!ids.ok()) {
    return MakeError(ErrorReason::kPromptNotUtf8, ids.status().message(),
                     "text");
  }
  return EncodeTokenizeResponse(*ids);
}

absl::StatusOr<std::string> RequestEncoder::Detokenize(
    absl::string_view bytes) const {
  ASSIGN_OR_RETURN(DetokenizeInput input, DecodeDetokenizeRequest(bytes));
  RETURN_IF_ERROR(CheckModel(input.model));
  ASSIGN_OR_RETURN(const std::string text, Decode(input.ids, "ids"));
  return EncodeDetokenizeResponse(text);
}

}  // namespace penstock
