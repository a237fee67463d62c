#pragma once

#include "absl/status/statusor.h"
#include "common/model/token_frame.h"
#include "protos/inference.pb.h"

namespace penstock {

// Conversions of what clients and workers share. To-proto never fails; what
// comes from the wire is checked: counts, enum values, durations.

v1::TokenFrame ToProto(const TokenFrame& frame);
absl::StatusOr<TokenFrame> FromProto(v1::TokenFrame proto);

v1::Timings ToProto(const RequestTimings& timings);
absl::StatusOr<RequestTimings> FromProto(const v1::Timings& proto);

}  // namespace penstock
