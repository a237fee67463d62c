#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// A read-only tensor inside a mapped model file. Does not own its bytes: valid
// as long as the file object it came from.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kF32;
  // Row-major: shape.back() is contiguous (K of a [N, K] matrix). This is the
  // reverse of the order that GGUF stores.
  std::vector<int64_t> shape;
  // Exactly the bytes of the shape in this type.
  absl::Span<const uint8_t> data;

  bool present() const { return !name.empty(); }
  // Of all leading dimensions together.
  int64_t rows() const {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return rows;
  }
  int64_t cols() const { return shape.empty() ? 0 : shape.back(); }
};

// Tensors of a file by name, in order.
using TensorMap = std::map<std::string, TensorView, std::less<>>;

// The stored bytes of row `row`. Precondition: 0 <= row < rows().
absl::Span<const uint8_t> RowBytes(const TensorView& tensor, int64_t row);

// Rows [first, first + count) as a matrix of their own: a part of a fused
// matrix, or one of a stack of them. Precondition: within rows().
TensorView SliceRows(const TensorView& tensor, int64_t first, int64_t count);

// Writes cols() floats of row `row` to `out` [cols]: exact for every type
// (of blocks, see UnpackGroups for which products round).
// Precondition: 0 <= row < rows(), out.size() == cols().
void DequantizeRow(const TensorView& tensor, int64_t row,
                   absl::Span<float> out);

}  // namespace penstock
