#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/files/model_error.h"
#include "common/model/files/tensor_view.h"

namespace penstock {

// The tensors of one safetensors file by name: an 8-byte header length, a JSON
// header, data. Each is checked to have a type that this build can read and
// exactly the bytes of its shape; together they cover the data without overlap
// or gap, as the format demands. Views point into `file`, which must outlive
// them; `path` is for messages only. Every error carries a ModelError.
absl::StatusOr<TensorMap> ReadSafetensors(absl::Span<const uint8_t> file,
                                          const std::string& path);

}  // namespace penstock
