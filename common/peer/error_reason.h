#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock {

// Stable names of what went wrong: part of the API. They travel in status
// details; one table maps each to a gRPC code (and later an HTTP status).
enum class ErrorReason {
  kUnknown,
  kInvalidField,  // a field's value is out of range
  kPromptEmpty,
  kPromptTooLong,
  kPromptNotUtf8,
  kModelNotFound,
  kFieldNotImplemented,
  kQueueFull,   // retry later
  kKvTooSmall,  // the request can never fit this worker's KV memory
  kNoWorkers,   // no healthy worker for a role
  kWorkerLost,
  kTransferFailed,
  kDeadline,
  kCancelled,
  kDraining,
  kIncompatibleWorker,  // layout, content or protocol differ
  kInternal,
};

struct ErrorInfo {
  ErrorReason reason = ErrorReason::kUnknown;
  std::string field;  // empty: no single field is to blame
  bool retryable = false;
  absl::Duration retry_after;  // zero: no advice
  // Set by a worker that holds the KV of this many leading tokens of the
  // request, under a lease, for the request's next attempt.
  int kept_tokens = 0;
};

absl::string_view ReasonName(ErrorReason reason);
absl::StatusCode CodeOf(ErrorReason reason);

// "ok", or the reason's name: for metrics and logs.
absl::string_view OutcomeName(const absl::Status& status);

// A status with the reason's code and the info attached as a payload.
absl::Status MakeError(ErrorReason reason, absl::string_view message,
                       absl::string_view field = "",
                       absl::Duration retry_after = absl::ZeroDuration());

// The same error, and what the worker kept. Precondition: not OK, tokens >= 0.
absl::Status WithKeptTokens(absl::Status status, int tokens);

// The attached info; for a plain status one made from its code.
ErrorInfo ErrorInfoOf(const absl::Status& status);

}  // namespace penstock
