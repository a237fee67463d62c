#pragma once

#include "absl/status/statusor.h"
#include "common/model/generate_request.h"
#include "protos/inference.pb.h"

namespace penstock {

// Conversions of what a request asks of its draws and its end. To-proto never
// fails and sets every parameter.
v1::Sampling ToProto(const SamplingParams& sampling);
v1::Stop ToProto(const StopConditions& stop);
v1::BeamSearch ToProto(const BeamParams& beam);

// What is absent keeps the domain's default; lists come out sorted, each value
// once. INVALID_FIELD names what has no form in the domain: an unknown stage,
// a negative number for what is switched off by leaving it out. Ranges are
// Validate's business.
absl::StatusOr<SamplingParams> FromProto(const v1::Sampling& proto);
absl::StatusOr<StopConditions> FromProto(v1::Stop proto);
absl::StatusOr<BeamParams> FromProto(const v1::BeamSearch& proto);

}  // namespace penstock
