#pragma once

#include "absl/status/status.h"
#include "protos/errors.pb.h"

namespace penstock {

// A status as a message: code and text, and the reason, field, advice and kept
// tokens of common/peer/error_reason.h as one ErrorDetail. Codes are gRPC's.
v1::StatusDetails ToProto(const absl::Status& status);

// Details that do not parse, that name an unknown reason or contradict the
// code are dropped: the code still holds. An unknown code is UNKNOWN.
absl::Status FromProto(const v1::StatusDetails& proto);

// Advice to retry after this many milliseconds, as it travels; 0: none.
int64_t RetryMillis(const absl::Status& status);

}  // namespace penstock
