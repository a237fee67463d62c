#include "common/model/files/quant_blocks.h"

#include <cstring>

#include "common/model/files/float16.h"

namespace penstock {
namespace {

// The 16 values of IQ4_NL and IQ4_XS.
constexpr int8_t kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

// Nibbles of `bytes` bytes: the low ones first, then the high ones.
void SplitNibbles(const uint8_t* from, int bytes, int8_t* out) {
  for (int i = 0; i < bytes; ++i) {
    out[i] = static_cast<int8_t>(from[i] & 15);
    out[bytes + i] = static_cast<int8_t>(from[i] >> 4);
  }
}

void Subtract(int8_t* quants, int count, int8_t by) {
  for (int i = 0; i < count; ++i)
    quants[i] = static_cast<int8_t>(quants[i] - by);
}

// Bit i of four bytes is the fifth bit of element i.
void AddFifthBits(const uint8_t* bits, int8_t* quants) {
  for (int i = 0; i < 32; ++i) {
    quants[i] =
        static_cast<int8_t>(quants[i] | (bits[i / 8] >> i % 8 & 1) << 4);
  }
}

void LookUp(int8_t* quants, int count) {
  for (int i = 0; i < count; ++i) quants[i] = kNonLinear[quants[i]];
}

// Two bits of each byte of Q2_K and Q3_K, in the order of elements.
void SplitCrumbs(const uint8_t* from, int8_t* out) {
  for (int e = 0; e < 256; ++e) {
    const int half = e / 128, shift = 2 * (e / 32 % 4);
    out[e] = static_cast<int8_t>(from[32 * half + e % 32] >> shift & 3);
  }
}

void UnpackKScales(const KScales& scales, float scale, float minimum,
                   const BlockGroups& out) {
  for (int g = 0; g < 8; ++g) {
    out.scales[g] = scale * static_cast<float>(scales.scale(g));
    out.minimums[g] = minimum * static_cast<float>(scales.minimum(g));
  }
}

}  // namespace

void BlockQ4_0::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  SplitNibbles(nibbles, 16, out.quants);
  Subtract(out.quants, 32, 8);
}

void BlockQ4_1::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  out.minimums[0] = -F16ToF32(offset);
  SplitNibbles(nibbles, 16, out.quants);
}

void BlockQ5_0::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  SplitNibbles(nibbles, 16, out.quants);
  AddFifthBits(fifth_bits, out.quants);
  Subtract(out.quants, 32, 16);
}

void BlockQ5_1::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  out.minimums[0] = -F16ToF32(offset);
  SplitNibbles(nibbles, 16, out.quants);
  AddFifthBits(fifth_bits, out.quants);
}

void BlockQ8_0::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  std::memcpy(out.quants, quants, sizeof(quants));
}

void BlockIQ4_NL::Unpack(const BlockGroups& out) const {
  out.scales[0] = F16ToF32(scale);
  SplitNibbles(nibbles, 16, out.quants);
  LookUp(out.quants, 32);
}

void BlockQ2_K::Unpack(const BlockGroups& out) const {
  const float all = F16ToF32(scale), all_minimum = F16ToF32(minimum);
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = all * static_cast<float>(scales[g] & 15);
    out.minimums[g] = all_minimum * static_cast<float>(scales[g] >> 4);
  }
  SplitCrumbs(crumbs, out.quants);
}

void BlockQ3_K::Unpack(const BlockGroups& out) const {
  const float all = F16ToF32(scale);
  for (int g = 0; g < 16; ++g) {
    const int low = scales[g % 8] >> 4 * (g / 8) & 15;
    const int high = scales[8 + g % 4] >> 2 * (g / 4) & 3;
    out.scales[g] = all * static_cast<float>((low | high << 4) - 32);
  }
  SplitCrumbs(crumbs, out.quants);
  for (int e = 0; e < 256; ++e) {
    const bool set = high_bits[e % 32] >> e / 32 & 1;
    if (!set) out.quants[e] = static_cast<int8_t>(out.quants[e] - 4);
  }
}

int KScales::scale(int group) const {
  if (group < 4) return bytes[group] & 63;
  return (bytes[4 + group] & 15) | bytes[group - 4] >> 6 << 4;
}

int KScales::minimum(int group) const {
  if (group < 4) return bytes[4 + group] & 63;
  return bytes[4 + group] >> 4 | bytes[group] >> 6 << 4;
}

void BlockQ4_K::Unpack(const BlockGroups& out) const {
  UnpackKScales(scales, F16ToF32(scale), F16ToF32(minimum), out);
  for (int h = 0; h < 4; ++h) {
    SplitNibbles(nibbles + 32 * h, 32, out.quants + 64 * h);
  }
}

void BlockQ5_K::Unpack(const BlockGroups& out) const {
  UnpackKScales(scales, F16ToF32(scale), F16ToF32(minimum), out);
  for (int h = 0; h < 4; ++h) {
    SplitNibbles(nibbles + 32 * h, 32, out.quants + 64 * h);
  }
  for (int e = 0; e < 256; ++e) {
    const int bit = fifth_bits[e % 32] >> e / 32 & 1;
    out.quants[e] = static_cast<int8_t>(out.quants[e] | bit << 4);
  }
}

void BlockQ6_K::Unpack(const BlockGroups& out) const {
  const float all = F16ToF32(scale);
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = all * static_cast<float>(scales[g]);
  }
  for (int h = 0; h < 2; ++h) {
    SplitNibbles(nibbles + 64 * h, 64, out.quants + 128 * h);
  }
  for (int e = 0; e < 256; ++e) {
    const int half = e / 128, shift = 2 * (e / 32 % 4);
    const int high = crumbs[32 * half + e % 32] >> shift & 3;
    out.quants[e] = static_cast<int8_t>((out.quants[e] | high << 4) - 32);
  }
}

void BlockIQ4_XS::Unpack(const BlockGroups& out) const {
  const float all = F16ToF32(scale);
  for (int g = 0; g < 8; ++g) {
    const int low = scales_low[g / 2] >> 4 * (g % 2) & 15;
    const int high = scales_high >> 2 * g & 3;
    out.scales[g] = all * static_cast<float>((low | high << 4) - 32);
    SplitNibbles(nibbles + 16 * g, 16, out.quants + 32 * g);
  }
  LookUp(out.quants, 256);
}

}  // namespace penstock
