#pragma once

#include <cstdint>
#include <cstring>

namespace penstock {

// IEEE 754 binary16 in integer arithmetic, for machines and sources without
// the conversion instructions; equal to them bit for bit except in the payload
// of a NaN.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t magnitude = half & 0x7fffu;
  uint32_t bits;
  if (magnitude >= 0x7c00) {  // infinity or NaN
    bits = 0x7f800000u | (magnitude & 0x3ff) << 13;
  } else if (magnitude >= 0x0400) {
    bits = (magnitude << 13) + ((127u - 15u) << 23);
  } else {  // zero or subnormal: the magnitude counts units of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    std::memcpy(&bits, &value, sizeof bits);
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to nearest, ties to even; too large becomes infinity.
inline uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | 0x7e00;   // NaN
  if (bits >= 0x477ff000u) return sign | 0x7c00;  // rounds to infinity
  if (bits >= 0x38800000u) {                      // normal
    const uint32_t odd = bits >> 13 & 1;
    return sign | ((bits - ((127u - 15u) << 23) + 0xfff + odd) >> 13);
  }
  // Subnormal: adding 0.5 leaves the result, rounded, in the low bits.
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  magnitude += 0.5f;
  std::memcpy(&bits, &magnitude, sizeof bits);
  return sign | (bits - 0x3f000000u);
}

// Rounds to nearest, ties to even; too large becomes infinity.
inline uint16_t FloatToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40;  // NaN
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline float Bfloat16ToFloat(uint16_t bfloat) {
  const uint32_t bits = uint32_t{bfloat} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace penstock
