#pragma once

#include <bit>
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

}  // namespace penstock
