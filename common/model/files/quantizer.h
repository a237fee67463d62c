#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// Whether QuantizeRow can make this type: F32, F16, BF16, Q4_0, Q4_1, Q5_0,
// Q5_1, Q8_0.
bool CanQuantizeTo(TensorType type);

// The type of that name, in either case; INVALID_ARGUMENT lists those that can
// be made.
absl::StatusOr<TensorType> QuantizedTypeOfName(absl::string_view name);

// Stores `values` as `type`, rounding as ggml's reference does, to the byte.
// Values that are not finite give some stored value, never an error.
// Precondition: CanQuantizeTo(type), values.size() is a whole number of its
// blocks, out.size() is exactly their bytes.
void QuantizeRow(TensorType type, absl::Span<const float> values,
                 absl::Span<uint8_t> out);

}  // namespace penstock
