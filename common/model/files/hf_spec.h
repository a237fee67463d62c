#pragma once

#include "absl/status/statusor.h"
#include "common/model/files/json_config.h"
#include "common/model/files/model_family.h"
#include "common/model/model_spec.h"

namespace penstock {

// The family that config.json names as "model_type".
absl::StatusOr<const ModelFamily*> ReadHuggingFaceFamily(
    const JsonConfig& config);

// The specification in config.json, without name and content id. Whether the
// head is tied is what the file says, where it does.
absl::StatusOr<ModelSpec> ReadHuggingFaceSpec(const JsonConfig& config,
                                              const ModelFamily& family,
                                              bool tied_by_default);

}  // namespace penstock
