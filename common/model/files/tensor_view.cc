#include "common/model/files/tensor_view.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/model/files/float16.h"
#include "common/model/files/quant_groups.h"

namespace penstock {
namespace {

// Elements that are unpacked at a time; a multiple of every type's block.
constexpr int64_t kStretch = 1024;
constexpr int64_t kLeastGroup = 16;

uint16_t LoadU16(const uint8_t* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// `from` starts with the bytes of out.size() elements, whole blocks.
void DequantizeBlocks(TensorType type, const QuantTraits& traits,
                      absl::Span<const uint8_t> from, absl::Span<float> out) {
  std::array<int8_t, kStretch> quants;
  std::array<float, kStretch / kLeastGroup> scales, minimums;
  const TensorTypeTraits& stored = Traits(type);
  while (!out.empty()) {
    const size_t count = std::min<size_t>(kStretch, out.size());
    const size_t bytes = count / stored.block_elements * stored.block_bytes;
    const size_t groups = count / traits.group_elements;
    UnpackGroups(type, from.first(bytes),
                 {.quants = absl::MakeSpan(quants).first(count),
                  .scales = absl::MakeSpan(scales).first(groups),
                  .minimums = absl::MakeSpan(minimums).first(
                      traits.has_minimum ? groups : 0)});
    for (size_t i = 0; i < count; ++i) {
      const size_t group = i / traits.group_elements;
      const float product = scales[group] * static_cast<float>(quants[i]);
      out[i] = traits.has_minimum ? product - minimums[group] : product;
    }
    from.remove_prefix(bytes);
    out.remove_prefix(count);
  }
}

}  // namespace

absl::Span<const uint8_t> RowBytes(const TensorView& tensor, int64_t row) {
  CHECK(row >= 0 && row < tensor.rows()) << tensor.name << " row " << row;
  const TensorTypeTraits& traits = Traits(tensor.type);
  const size_t bytes = static_cast<size_t>(tensor.cols()) /
                       traits.block_elements * traits.block_bytes;
  CHECK((row + 1) * bytes <= tensor.data.size()) << tensor.name;
  return tensor.data.subspan(row * bytes, bytes);
}

TensorView SliceRows(const TensorView& tensor, int64_t first, int64_t count) {
  CHECK(first >= 0 && count > 0 && first + count <= tensor.rows())
      << tensor.name;
  const size_t row_bytes = RowBytes(tensor, 0).size();
  TensorView slice;
  slice.name = absl::StrCat(tensor.name, "[", first, ":", first + count, "]");
  slice.type = tensor.type;
  slice.shape = {count, tensor.cols()};
  slice.data = tensor.data.subspan(first * row_bytes, count * row_bytes);
  return slice;
}

void DequantizeRow(const TensorView& tensor, int64_t row,
                   absl::Span<float> out) {
  CHECK(static_cast<int64_t>(out.size()) == tensor.cols()) << tensor.name;
  absl::Span<const uint8_t> bytes = RowBytes(tensor, row);
  if (const QuantTraits* traits = QuantTraitsOf(tensor.type)) {
    DequantizeBlocks(tensor.type, *traits, bytes, out);
    return;
  }
  if (tensor.type == TensorType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  const bool half = tensor.type == TensorType::kF16;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint16_t bits = LoadU16(bytes.data() + 2 * i);
    out[i] = half ? F16ToF32(bits) : BF16ToF32(bits);
  }
}

}  // namespace penstock
