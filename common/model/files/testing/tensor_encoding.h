#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// To the nearest binary16, ties to even; beyond the range, infinity.
uint16_t F32ToF16(float value);

// Stores values as a type does, by the plainest rule that keeps the error
// within half a step: good enough to make test models, not to make real ones.
// Precondition: a whole number of blocks, all values finite.
std::string EncodeTensor(TensorType type, absl::Span<const float> values);

}  // namespace penstock
