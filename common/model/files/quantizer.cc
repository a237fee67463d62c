#include "common/model/files/quantizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/model/files/float16.h"
#include "common/model/files/quant_blocks.h"

namespace penstock {
namespace {

constexpr size_t kBlock = 32;

float Inverse(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// Truncates; what is not a number between the bounds goes to the nearer one.
uint8_t ToQuant(float value, int greatest) {
  if (!(value > 0.0f)) return 0;
  const float most = static_cast<float>(greatest);
  return static_cast<uint8_t>(std::min(value, most));
}

// The first value of the greatest magnitude, with its sign.
float Extreme(const float* values) {
  float extreme = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::abs(values[i]) > std::abs(extreme)) extreme = values[i];
  }
  return extreme;
}

void StoreNibbles(const uint8_t* quants, uint8_t* nibbles) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    nibbles[i] = static_cast<uint8_t>((quants[i] & 15) |
                                      (quants[i + kBlock / 2] & 15) << 4);
  }
}

void StoreFifthBits(const uint8_t* quants, uint8_t* bits) {
  std::memset(bits, 0, kBlock / 8);
  for (size_t i = 0; i < kBlock; ++i) {
    bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | quants[i] >> 4 << i % 8);
  }
}

// Scale alone: the extreme value takes the least quant, -half. Returns the
// scale's bits; quants have `half` added.
uint16_t QuantizeCentred(const float* values, int half, uint8_t* quants) {
  const float scale = Extreme(values) / static_cast<float>(-half);
  const float inverse = Inverse(scale);
  const float centre = static_cast<float>(half) + 0.5f;
  for (size_t i = 0; i < kBlock; ++i) {
    quants[i] = ToQuant(values[i] * inverse + centre, 2 * half - 1);
  }
  return F32ToF16(scale);
}

struct ScaleAndOffset {
  uint16_t scale;
  uint16_t offset;
};

ScaleAndOffset QuantizeOffset(const float* values, int greatest,
                              uint8_t* quants) {
  auto [low, high] = std::minmax_element(values, values + kBlock);
  const float scale = (*high - *low) / static_cast<float>(greatest);
  const float inverse = Inverse(scale);
  for (size_t i = 0; i < kBlock; ++i) {
    quants[i] = ToQuant((values[i] - *low) * inverse + 0.5f, greatest);
  }
  return {F32ToF16(scale), F32ToF16(*low)};
}

void Quantize(const float* values, BlockQ4_0& block) {
  uint8_t quants[kBlock];
  block.scale = QuantizeCentred(values, 8, quants);
  StoreNibbles(quants, block.nibbles);
}

void Quantize(const float* values, BlockQ4_1& block) {
  uint8_t quants[kBlock];
  const auto [scale, offset] = QuantizeOffset(values, 15, quants);
  block.scale = scale;
  block.offset = offset;
  StoreNibbles(quants, block.nibbles);
}

void Quantize(const float* values, BlockQ5_0& block) {
  uint8_t quants[kBlock];
  block.scale = QuantizeCentred(values, 16, quants);
  StoreFifthBits(quants, block.fifth_bits);
  StoreNibbles(quants, block.nibbles);
}

void Quantize(const float* values, BlockQ5_1& block) {
  uint8_t quants[kBlock];
  const auto [scale, offset] = QuantizeOffset(values, 31, quants);
  block.scale = scale;
  block.offset = offset;
  StoreFifthBits(quants, block.fifth_bits);
  StoreNibbles(quants, block.nibbles);
}

void Quantize(const float* values, BlockQ8_0& block) {
  const float scale = std::abs(Extreme(values)) / 127.0f;
  const float inverse = Inverse(scale);
  for (size_t i = 0; i < kBlock; ++i) {
    const float quant = std::round(values[i] * inverse);
    // False for what is not a number, too.
    const bool inside = quant >= -127.0f && quant <= 127.0f;
    const float bound = quant > 0 ? 127.0f : -127.0f;
    block.quants[i] = static_cast<int8_t>(inside ? quant : bound);
  }
  block.scale = F32ToF16(scale);
}

template <typename Block>
void QuantizeBlocks(absl::Span<const float> values, uint8_t* out) {
  static_assert(Block::kElements == kBlock);
  for (size_t at = 0; at < values.size(); at += kBlock) {
    Block block;
    Quantize(values.data() + at, block);
    std::memcpy(out, &block, sizeof(block));
    out += sizeof(block);
  }
}

void StoreHalves(absl::Span<const float> values, uint16_t (*to_half)(float),
                 uint8_t* out) {
  for (float value : values) {
    const uint16_t half = to_half(value);
    std::memcpy(out, &half, sizeof(half));
    out += sizeof(half);
  }
}

}  // namespace

bool CanQuantizeTo(TensorType type) { return type <= TensorType::kQ8_0; }

absl::StatusOr<TensorType> QuantizedTypeOfName(absl::string_view name) {
  const std::optional<TensorType> type = TensorTypeOfName(name);
  if (type && CanQuantizeTo(*type)) return *type;
  std::vector<absl::string_view> known;
  for (int i = 0; i < kTensorTypeCount; ++i) {
    const TensorType other = static_cast<TensorType>(i);
    if (CanQuantizeTo(other)) known.push_back(Traits(other).name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "weights of type \"", name, "\" cannot be made on load; use one of ",
      absl::StrJoin(known, ", "), ", or give a file that has them"));
}

void QuantizeRow(TensorType type, absl::Span<const float> values,
                 absl::Span<uint8_t> out) {
  const TensorTypeTraits& traits = Traits(type);
  CHECK(values.size() % traits.block_elements == 0) << "a partial block";
  CHECK(values.size() / traits.block_elements * traits.block_bytes ==
        out.size());
  switch (type) {
    case TensorType::kF32:
      std::memcpy(out.data(), values.data(), out.size());
      return;
    case TensorType::kF16:
      return StoreHalves(values, F32ToF16, out.data());
    case TensorType::kBF16:
      return StoreHalves(values, F32ToBF16, out.data());
    case TensorType::kQ4_0:
      return QuantizeBlocks<BlockQ4_0>(values, out.data());
    case TensorType::kQ4_1:
      return QuantizeBlocks<BlockQ4_1>(values, out.data());
    case TensorType::kQ5_0:
      return QuantizeBlocks<BlockQ5_0>(values, out.data());
    case TensorType::kQ5_1:
      return QuantizeBlocks<BlockQ5_1>(values, out.data());
    case TensorType::kQ8_0:
      return QuantizeBlocks<BlockQ8_0>(values, out.data());
    default:
      CHECK(false) << "cannot quantise to " << traits.name;
  }
}

}  // namespace penstock
