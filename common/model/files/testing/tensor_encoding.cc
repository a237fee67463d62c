#include "common/model/files/testing/tensor_encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"
#include "common/model/files/float16.h"

namespace penstock {
namespace {

constexpr size_t kBlock = 32;

void AppendU16(std::string& out, uint16_t value) {
  out.push_back(static_cast<char>(value & 0xFF));
  out.push_back(static_cast<char>(value >> 8));
}

uint16_t F32ToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

int Quant(float value, float scale, int low, int high) {
  if (scale == 0.0f) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::lround(value / scale)), low, high);
}

// Elements i and i + 16 share byte i.
void AppendNibbles(std::string& out, absl::Span<const int> quants) {
  for (size_t i = 0; i < kBlock / 2; ++i) {
    out.push_back(static_cast<char>(quants[i] | quants[i + kBlock / 2] << 4));
  }
}

float MaxMagnitude(absl::Span<const float> block) {
  float most = 0;
  for (float value : block) most = std::max(most, std::abs(value));
  return most;
}

void AppendQ4_0(std::string& out, absl::Span<const float> block) {
  uint16_t scale = F32ToF16(MaxMagnitude(block) / 7.0f);
  AppendU16(out, scale);
  int quants[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    quants[i] = Quant(block[i], F16ToF32(scale), -8, 7) + 8;
  }
  AppendNibbles(out, quants);
}

void AppendQ4_1(std::string& out, absl::Span<const float> block) {
  auto [low, high] = std::minmax_element(block.begin(), block.end());
  uint16_t scale = F32ToF16((*high - *low) / 15.0f);
  uint16_t minimum = F32ToF16(*low);
  AppendU16(out, scale);
  AppendU16(out, minimum);
  int quants[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    quants[i] = Quant(block[i] - F16ToF32(minimum), F16ToF32(scale), 0, 15);
  }
  AppendNibbles(out, quants);
}

void AppendQ8_0(std::string& out, absl::Span<const float> block) {
  uint16_t scale = F32ToF16(MaxMagnitude(block) / 127.0f);
  AppendU16(out, scale);
  for (float value : block) {
    out.push_back(static_cast<char>(Quant(value, F16ToF32(scale), -127, 127)));
  }
}

}  // namespace

uint16_t F32ToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;   // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // rounds past 65504
  if (magnitude < 0x38800000) {  // subnormal: a multiple of 2^-24
    float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  magnitude -= 112u << 23;
  return sign | static_cast<uint16_t>(
                    (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

std::string EncodeTensor(TensorType type, absl::Span<const float> values) {
  const size_t step = Traits(type).block_elements;
  CHECK(values.size() % step == 0) << "a partial block";
  std::string out;
  for (size_t at = 0; at < values.size(); at += step) {
    absl::Span<const float> block = values.subspan(at, step);
    switch (type) {
      case TensorType::kF32:
        out.append(reinterpret_cast<const char*>(block.data()), sizeof(float));
        break;
      case TensorType::kF16:
        AppendU16(out, F32ToF16(block[0]));
        break;
      case TensorType::kBF16:
        AppendU16(out, F32ToBF16(block[0]));
        break;
      case TensorType::kQ4_0:
        AppendQ4_0(out, block);
        break;
      case TensorType::kQ4_1:
        AppendQ4_1(out, block);
        break;
      case TensorType::kQ8_0:
        AppendQ8_0(out, block);
        break;
    }
  }
  return out;
}

}  // namespace penstock
