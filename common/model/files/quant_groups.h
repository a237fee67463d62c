#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"
#include "common/model/files/tensor_view.h"

namespace penstock {

// Every block format is one idea: a run of elements, a group, shares a scale
// and maybe a minimum, and an element is
//   scale * quant - minimum
// with an integer quant. The formats differ in how they store the three.
struct QuantTraits {
  int group_elements;  // 16 or 32; a divisor of the type's block
  bool has_minimum;    // false: an element is scale * quant
  // The least and the greatest quant, as UnpackGroups gives it. IQ4_NL and
  // IQ4_XS take 16 values within, unevenly spaced.
  int least;
  int greatest;
};

// Null for the types that are not quantised: F32, F16, BF16.
const QuantTraits* QuantTraitsOf(TensorType type);

// A run of elements as groups.
struct QuantGroups {
  absl::Span<int8_t> quants;   // [elements]
  absl::Span<float> scales;    // [elements / group_elements]
  absl::Span<float> minimums;  // the same; empty for types without minimums
};

// Writes whole stored blocks to `out`, whose sizes say how many. Scales and
// minimums are what the format defines, rounded once to F32 each; rounding the
// product and then the difference to F32 gives what DequantizeRow gives.
// Precondition: the type has QuantTraits; sizes as above.
void UnpackGroups(TensorType type, absl::Span<const uint8_t> blocks,
                  const QuantGroups& out);

// The same for row `row` of a tensor. Precondition: also 0 <= row < rows().
void UnpackGroups(const TensorView& tensor, int64_t row,
                  const QuantGroups& out);

}  // namespace penstock
