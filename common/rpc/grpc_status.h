#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace penstock {

// The one mapping between our statuses and gRPC's. Codes are the same numbers;
// the reason, field and advice of common/peer/error_reason.h travel in the
// status details (StatusDetails with one ErrorDetail). Details that do not
// parse, or that name an unknown reason, are dropped: the code still holds.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// The value of the trailer `grpc-retry-pushback-ms`, when the status advises
// to retry later.
std::optional<int64_t> RetryPushbackMillis(const absl::Status& status);

}  // namespace penstock
