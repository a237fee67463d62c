#include "common/peer/error_reason.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace penstock {
namespace {

constexpr absl::string_view kUrl = "penstock/error";
constexpr absl::string_view kKeptUrl = "penstock/kept-tokens";

struct Row {
  ErrorReason reason;
  absl::string_view name;
  absl::StatusCode code;
  bool retryable;
};

// The one table. Rows are in the order of the enum.
constexpr Row kRows[] = {
    {ErrorReason::kUnknown, "UNKNOWN", absl::StatusCode::kUnknown, false},
    {ErrorReason::kInvalidField, "INVALID_FIELD",
     absl::StatusCode::kInvalidArgument, false},
    {ErrorReason::kPromptEmpty, "PROMPT_EMPTY",
     absl::StatusCode::kInvalidArgument, false},
    {ErrorReason::kPromptTooLong, "PROMPT_TOO_LONG",
     absl::StatusCode::kInvalidArgument, false},
    {ErrorReason::kPromptNotUtf8, "PROMPT_NOT_UTF8",
     absl::StatusCode::kInvalidArgument, false},
    {ErrorReason::kModelNotFound, "MODEL_NOT_FOUND",
     absl::StatusCode::kNotFound, false},
    {ErrorReason::kFieldNotImplemented, "FIELD_NOT_IMPLEMENTED",
     absl::StatusCode::kUnimplemented, false},
    {ErrorReason::kQueueFull, "QUEUE_FULL",
     absl::StatusCode::kResourceExhausted, true},
    {ErrorReason::kKvTooSmall, "KV_TOO_SMALL",
     absl::StatusCode::kResourceExhausted, false},
    {ErrorReason::kNoWorkers, "NO_WORKERS", absl::StatusCode::kUnavailable,
     true},
    {ErrorReason::kWorkerLost, "WORKER_LOST", absl::StatusCode::kUnavailable,
     true},
    {ErrorReason::kTransferFailed, "TRANSFER_FAILED",
     absl::StatusCode::kUnavailable, true},
    {ErrorReason::kDeadline, "DEADLINE", absl::StatusCode::kDeadlineExceeded,
     false},
    {ErrorReason::kCancelled, "CANCELLED", absl::StatusCode::kCancelled, false},
    {ErrorReason::kDraining, "DRAINING", absl::StatusCode::kUnavailable, true},
    {ErrorReason::kIncompatibleWorker, "INCOMPATIBLE_WORKER",
     absl::StatusCode::kFailedPrecondition, false},
    {ErrorReason::kInternal, "INTERNAL", absl::StatusCode::kInternal, false},
};

const Row& RowOf(ErrorReason reason) { return kRows[static_cast<int>(reason)]; }

ErrorReason ReasonOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return ErrorReason::kInvalidField;
    case absl::StatusCode::kNotFound:
      return ErrorReason::kModelNotFound;
    case absl::StatusCode::kUnimplemented:
      return ErrorReason::kFieldNotImplemented;
    case absl::StatusCode::kResourceExhausted:
      return ErrorReason::kQueueFull;
    case absl::StatusCode::kUnavailable:
      return ErrorReason::kWorkerLost;
    case absl::StatusCode::kDeadlineExceeded:
      return ErrorReason::kDeadline;
    case absl::StatusCode::kCancelled:
      return ErrorReason::kCancelled;
    case absl::StatusCode::kFailedPrecondition:
      return ErrorReason::kIncompatibleWorker;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
      return ErrorReason::kInternal;
    default:
      return ErrorReason::kUnknown;
  }
}

int KeptTokensOf(const absl::Status& status) {
  int tokens = 0;
  auto payload = status.GetPayload(kKeptUrl);
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &tokens))
    return 0;
  return std::max(tokens, 0);
}

}  // namespace

absl::string_view ReasonName(ErrorReason reason) { return RowOf(reason).name; }

absl::StatusCode CodeOf(ErrorReason reason) { return RowOf(reason).code; }

absl::string_view OutcomeName(const absl::Status& status) {
  return status.ok() ? "ok" : ReasonName(ErrorInfoOf(status).reason);
}

absl::Status MakeError(ErrorReason reason, absl::string_view message,
                       absl::string_view field, absl::Duration retry_after) {
  absl::Status status(CodeOf(reason), message);
  status.SetPayload(
      kUrl, absl::Cord(absl::StrCat(static_cast<int>(reason), "\n", field, "\n",
                                    absl::ToInt64Milliseconds(retry_after))));
  return status;
}

absl::Status WithKeptTokens(absl::Status status, int tokens) {
  CHECK(!status.ok() && tokens >= 0);
  status.SetPayload(kKeptUrl, absl::Cord(absl::StrCat(tokens)));
  return status;
}

ErrorInfo ErrorInfoOf(const absl::Status& status) {
  ErrorInfo info;
  info.kept_tokens = KeptTokensOf(status);
  info.reason = ReasonOf(status.code());
  info.retryable = RowOf(info.reason).retryable;
  auto payload = status.GetPayload(kUrl);
  if (!payload.has_value()) return info;
  std::string text(*payload);
  std::vector<std::string> parts = absl::StrSplit(text, '\n');
  int reason = 0;
  int64_t retry_ms = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &reason) || reason < 0 ||
      reason >= static_cast<int>(std::size(kRows)) ||
      !absl::SimpleAtoi(parts[2], &retry_ms)) {
    return info;
  }
  info.reason = static_cast<ErrorReason>(reason);
  info.field = parts[1];
  info.retryable = RowOf(info.reason).retryable;
  info.retry_after = absl::Milliseconds(retry_ms);
  return info;
}

}  // namespace penstock
