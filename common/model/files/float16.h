#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace penstock {

// IEEE binary16 to binary32: exact, subnormals, infinities and NaNs included.
inline float F16ToF32(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  }
  if (magnitude >= 0x0400) {  // normal: the exponent's bias grows by 112
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  }
  float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

// bfloat16 to binary32: exact.
inline float BF16ToF32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// To the nearest binary16, ties to even; beyond the range, infinity.
inline uint16_t F32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;   // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // rounds past 65504
  if (magnitude < 0x38800000) {  // subnormal: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  magnitude -= 112u << 23;
  return sign | static_cast<uint16_t>(
                    (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13);
}

// To the nearest bfloat16, ties to even; a NaN stays one.
inline uint16_t F32ToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return static_cast<uint16_t>(bits >> 16 | 64);
  }
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace penstock
