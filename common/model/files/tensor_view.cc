#include "common/model/files/tensor_view.h"

#include <cstring>

#include "common/base/check.h"
#include "common/model/files/float16.h"

namespace penstock {
namespace {

// Elements of a block in all of the block formats here.
constexpr size_t kBlock = 32;
constexpr size_t kHalfBlock = kBlock / 2;

uint16_t LoadU16(const uint8_t* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Each reads `row`, exactly the bytes of out.size() elements.

void F32Row(const uint8_t* row, absl::Span<float> out) {
  std::memcpy(out.data(), row, out.size() * sizeof(float));
}

void F16Row(const uint8_t* row, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = F16ToF32(LoadU16(row + 2 * i));
}

void BF16Row(const uint8_t* row, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = BF16ToF32(LoadU16(row + 2 * i));
  }
}

// Block: F16 scale, 16 bytes; byte i holds elements i (low) and i + 16.
void Q4_0Row(const uint8_t* row, absl::Span<float> out) {
  for (size_t at = 0; at < out.size(); at += kBlock, row += 2 + kHalfBlock) {
    float scale = F16ToF32(LoadU16(row));
    const uint8_t* quants = row + 2;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      out[at + i] = scale * static_cast<float>((quants[i] & 15) - 8);
      out[at + i + kHalfBlock] =
          scale * static_cast<float>((quants[i] >> 4) - 8);
    }
  }
}

// Block: F16 scale, F16 minimum, quants as in Q4_0.
void Q4_1Row(const uint8_t* row, absl::Span<float> out) {
  for (size_t at = 0; at < out.size(); at += kBlock, row += 4 + kHalfBlock) {
    float scale = F16ToF32(LoadU16(row));
    float minimum = F16ToF32(LoadU16(row + 2));
    const uint8_t* quants = row + 4;
    for (size_t i = 0; i < kHalfBlock; ++i) {
      out[at + i] = scale * static_cast<float>(quants[i] & 15) + minimum;
      out[at + i + kHalfBlock] =
          scale * static_cast<float>(quants[i] >> 4) + minimum;
    }
  }
}

// Block: F16 scale, 32 signed bytes.
void Q8_0Row(const uint8_t* row, absl::Span<float> out) {
  for (size_t at = 0; at < out.size(); at += kBlock, row += 2 + kBlock) {
    float scale = F16ToF32(LoadU16(row));
    for (size_t i = 0; i < kBlock; ++i) {
      out[at + i] = scale * static_cast<float>(static_cast<int8_t>(row[2 + i]));
    }
  }
}

using RowFunction = void (*)(const uint8_t* row, absl::Span<float> out);

RowFunction RowFunctionOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return F32Row;
    case TensorType::kF16:
      return F16Row;
    case TensorType::kBF16:
      return BF16Row;
    case TensorType::kQ4_0:
      return Q4_0Row;
    case TensorType::kQ4_1:
      return Q4_1Row;
    case TensorType::kQ8_0:
      return Q8_0Row;
  }
  CHECK(false) << "no such tensor type: " << static_cast<int>(type);
  return nullptr;
}

}  // namespace

void DequantizeRow(const TensorView& tensor, int64_t row,
                   absl::Span<float> out) {
  CHECK(row >= 0 && row < tensor.rows()) << tensor.name << " row " << row;
  CHECK(static_cast<int64_t>(out.size()) == tensor.cols()) << tensor.name;
  const TensorTypeTraits& traits = Traits(tensor.type);
  size_t row_bytes = out.size() / traits.block_elements * traits.block_bytes;
  CHECK((row + 1) * row_bytes <= tensor.data.size()) << tensor.name;
  RowFunctionOf(tensor.type)(tensor.data.data() + row * row_bytes, out);
}

}  // namespace penstock
