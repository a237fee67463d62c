#pragma once

#include <cstdint>
#include <cstring>

namespace penstock {

// FP8 e4m3: sign, 4 bits of exponent with bias 7, 3 of mantissa. No infinity;
// 0x7f and 0xff are NaN, 0x7e is the largest, 448, and 0x01 is 2^-9.
inline float Fp8ToFloat(uint8_t code) {
  const uint32_t magnitude = code & 0x7fu;
  float value;
  if (magnitude == 0x7f) {
    value = __builtin_nanf("");
  } else if (magnitude >= 8) {
    const uint32_t bits = (magnitude << 20) + ((127u - 7u) << 23);
    std::memcpy(&value, &bits, sizeof value);
  } else {  // zero or subnormal: counts units of 2^-9
    value = static_cast<float>(magnitude) * 0x1p-9f;
  }
  return code & 0x80 ? -value : value;
}

// Rounds to nearest, ties to even; what is too large, infinity included,
// becomes 448.
inline uint8_t FloatToFp8(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 24 & 0x80u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | 0x7f;   // NaN
  if (bits >= 0x43e00000u) return sign | 0x7e;  // 448
  if (bits >= 0x3c800000u) {                    // normal
    const uint32_t odd = bits >> 20 & 1;
    return sign | ((bits - ((127u - 7u) << 23) + 0x7ffff + odd) >> 20);
  }
  // Subnormal: adding 2^14 leaves the result, rounded, in the low bits.
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  magnitude += 0x1p14f;
  std::memcpy(&bits, &magnitude, sizeof bits);
  return sign | (bits - 0x46800000u);
}

}  // namespace penstock
