#pragma once

#include <string>

#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// The stored bytes of values. Precondition: CanQuantizeTo(type), a whole number
// of blocks.
std::string EncodeTensor(TensorType type, absl::Span<const float> values);

}  // namespace penstock
