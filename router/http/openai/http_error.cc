#include "router/http/openai/http_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

int StatusOf(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kInvalidField:
    case ErrorReason::kPromptEmpty:
    case ErrorReason::kPromptTooLong:
    case ErrorReason::kPromptNotUtf8:
    case ErrorReason::kFieldNotImplemented:
    case ErrorReason::kKvTooSmall:
      return 400;
    case ErrorReason::kModelNotFound:
      return 404;
    case ErrorReason::kQueueFull:
      return 429;
    case ErrorReason::kCancelled:
      return 499;
    case ErrorReason::kNoWorkers:
    case ErrorReason::kWorkerLost:
    case ErrorReason::kTransferFailed:
    case ErrorReason::kDraining:
      return 503;
    case ErrorReason::kDeadline:
      return 504;
    case ErrorReason::kUnknown:
    case ErrorReason::kIncompatibleWorker:
    case ErrorReason::kInternal:
      return 500;
  }
  return 500;
}

absl::string_view TypeOf(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "service_unavailable_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

// OpenAI's own codes where it has one for the case.
std::string CodeOfReason(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kPromptTooLong:
      return "context_length_exceeded";
    case ErrorReason::kFieldNotImplemented:
      return "unsupported_parameter";
    case ErrorReason::kInvalidField:
      return "invalid_value";
    default:
      return absl::AsciiStrToLower(ReasonName(reason));
  }
}

// The API's name of a field that is checked under the native API's name.
std::string SpelledBy(AnswerKind kind, absl::string_view field) {
  struct Spelling {
    absl::string_view native, api;
  };
  static constexpr Spelling kSpellings[] = {
      {"stop.strings", "stop"},
      {"stop.ids", "stop_token_ids"},
      {"sampling.penalty_window", "repeat_last_n"},
      {"sampling.dry_range", "dry_penalty_last_n"},
      {"sampling.dry_breakers", "dry_sequence_breakers"},
      {"sampling.allowed_tokens", "allowed_token_ids"},
      {"beam.width", "beam_width"},
      {"beam.length_penalty", "length_penalty"},
      {"beam", "use_beam_search"},
  };
  for (const Spelling& spelling : kSpellings) {
    if (field == spelling.native) return std::string(spelling.api);
  }
  if (field == "sampling.logprobs") {
    return kind == AnswerKind::kChat ? "top_logprobs" : "logprobs";
  }
  if (!absl::ConsumePrefix(&field, "sampling.")) {
    absl::ConsumePrefix(&field, "stop.");
  }
  return std::string(field);
}

ApiJson Body(absl::string_view message, int status, absl::string_view param,
             absl::string_view code) {
  return {{"error",
           {{"message", std::string(message)},
            {"type", std::string(TypeOf(status))},
            {"param", param.empty() ? ApiJson() : ApiJson(std::string(param))},
            {"code", std::string(code)}}}};
}

}  // namespace

HttpError ToHttpError(const absl::Status& status, AnswerKind kind) {
  const ErrorInfo info = ErrorInfoOf(status);
  HttpError error;
  error.status = StatusOf(info.reason);
  error.retry_after = info.retry_after;
  error.retry_helps = info.retryable;
  const std::string param = SpelledBy(kind, info.field);
  std::string message(status.message());
  // Messages begin with the field that they are about.
  if (!info.field.empty() && absl::StartsWith(message, info.field)) {
    message = absl::StrCat(param, message.substr(info.field.size()));
  }
  error.body = Body(message, error.status, param, CodeOfReason(info.reason));
  return error;
}

HttpError PlainHttpError(int status, absl::string_view message,
                         absl::string_view code) {
  HttpError error;
  error.status = status;
  error.body = Body(message, status, "", code);
  return error;
}

}  // namespace penstock
