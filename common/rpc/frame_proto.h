#pragma once

#include "absl/status/statusor.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"
#include "protos/inference.pb.h"

namespace penstock {

// Conversions of what clients and workers share. To-proto never fails; what
// comes from the wire is checked: counts, enum values, durations.

v1::TokenFrame ToProto(const TokenFrame& frame);
absl::StatusOr<TokenFrame> FromProto(v1::TokenFrame proto);

v1::Timings ToProto(const RequestTimings& timings);
absl::StatusOr<RequestTimings> FromProto(const v1::Timings& proto);

// Every parameter is present in the result.
v1::Sampling ToProto(const SamplingParams& sampling);
v1::Stop ToProto(const StopConditions& stop);

// What is absent keeps the domain's default. UNIMPLEMENTED, with the field's
// name, for what is set but not built. Ranges are Validate's business.
absl::StatusOr<SamplingParams> FromProto(const v1::Sampling& proto);
absl::StatusOr<StopConditions> FromProto(v1::Stop proto);

// UNIMPLEMENTED that names the field.
absl::Status NotBuilt(absl::string_view field);

}  // namespace penstock
