#pragma once

#include <cstdint>

namespace penstock {

// The block formats of GGUF files, byte for byte (little-endian, not padded).
// F16 numbers are kept as their bits. Each block knows how to write itself as
// groups (see quant_groups.h): kElements quants, and for each kGroup of them a
// scale and, where kHasMinimum, a minimum.
struct BlockGroups {
  int8_t* quants;
  float* scales;
  float* minimums;
};

// Nibble i of 16 bytes is element i (low) or i + 16 (high).

struct BlockQ4_0 {
  static constexpr int kElements = 32, kGroup = 32, kLeast = -8, kGreatest = 7;
  static constexpr bool kHasMinimum = false;
  uint16_t scale;
  uint8_t nibbles[16];  // quant + 8
  void Unpack(const BlockGroups& out) const;
};

struct BlockQ4_1 {
  static constexpr int kElements = 32, kGroup = 32, kLeast = 0, kGreatest = 15;
  static constexpr bool kHasMinimum = true;
  uint16_t scale;
  uint16_t offset;  // minus the minimum
  uint8_t nibbles[16];
  void Unpack(const BlockGroups& out) const;
};

struct BlockQ5_0 {
  static constexpr int kElements = 32, kGroup = 32, kLeast = -16,
                       kGreatest = 15;
  static constexpr bool kHasMinimum = false;
  uint16_t scale;
  uint8_t fifth_bits[4];  // bit i: the top bit of element i
  uint8_t nibbles[16];    // the rest of quant + 16
  void Unpack(const BlockGroups& out) const;
};

struct BlockQ5_1 {
  static constexpr int kElements = 32, kGroup = 32, kLeast = 0, kGreatest = 31;
  static constexpr bool kHasMinimum = true;
  uint16_t scale;
  uint16_t offset;  // minus the minimum
  uint8_t fifth_bits[4];
  uint8_t nibbles[16];
  void Unpack(const BlockGroups& out) const;
};

struct BlockQ8_0 {
  static constexpr int kElements = 32, kGroup = 32, kLeast = -128,
                       kGreatest = 127;
  static constexpr bool kHasMinimum = false;
  uint16_t scale;
  int8_t quants[32];
  void Unpack(const BlockGroups& out) const;
};

// Nibbles choose among 16 values.
struct BlockIQ4_NL {
  static constexpr int kElements = 32, kGroup = 32, kLeast = -127,
                       kGreatest = 113;
  static constexpr bool kHasMinimum = false;
  uint16_t scale;
  uint8_t nibbles[16];
  void Unpack(const BlockGroups& out) const;
};

// Super-blocks of 256 elements: a group's scale is the block's scale times a
// small integer, and so is its minimum.

// Bits 2j and 2j + 1 of byte 32 h + i are element 128 h + 32 j + i.
struct BlockQ2_K {
  static constexpr int kElements = 256, kGroup = 16, kLeast = 0, kGreatest = 3;
  static constexpr bool kHasMinimum = true;
  uint8_t scales[16];  // low nibble: scale; high: minimum
  uint8_t crumbs[64];
  uint16_t scale;
  uint16_t minimum;
  void Unpack(const BlockGroups& out) const;
};

// Crumbs as in Q2_K. Bit b of high_bits[i] belongs to element 32 b + i: when it
// is clear, 4 is taken off.
struct BlockQ3_K {
  static constexpr int kElements = 256, kGroup = 16, kLeast = -4, kGreatest = 3;
  static constexpr bool kHasMinimum = false;
  uint8_t high_bits[32];
  uint8_t crumbs[64];
  // Scale + 32 of group g: four low bits in nibble g / 8 of byte g % 8, two
  // high bits at bit 2 (g / 4) of byte 8 + g % 4.
  uint8_t scales[12];
  uint16_t scale;
  void Unpack(const BlockGroups& out) const;
};

// Six-bit scales and minimums of eight groups of 32. Groups 0 to 3: the low six
// bits of bytes g and 4 + g. Groups 4 to 7: four low bits in the nibbles of
// byte 4 + g, two high bits on top of bytes g - 4 and g.
struct KScales {
  uint8_t bytes[12];
  int scale(int group) const;
  int minimum(int group) const;
};

// Nibbles of byte 32 h + i are elements 64 h + i (low) and 64 h + 32 + i.
struct BlockQ4_K {
  static constexpr int kElements = 256, kGroup = 32, kLeast = 0, kGreatest = 15;
  static constexpr bool kHasMinimum = true;
  uint16_t scale;
  uint16_t minimum;
  KScales scales;
  uint8_t nibbles[128];
  void Unpack(const BlockGroups& out) const;
};

// Nibbles as in Q4_K; bit b of fifth_bits[i] belongs to element 32 b + i.
struct BlockQ5_K {
  static constexpr int kElements = 256, kGroup = 32, kLeast = 0, kGreatest = 31;
  static constexpr bool kHasMinimum = true;
  uint16_t scale;
  uint16_t minimum;
  KScales scales;
  uint8_t fifth_bits[32];
  uint8_t nibbles[128];
  void Unpack(const BlockGroups& out) const;
};

// Quant + 32 of element 128 h + 32 j + i: four low bits in nibble j / 2 of byte
// 64 h + 32 (j % 2) + i, two high bits at bit 2 j of crumb byte 32 h + i.
struct BlockQ6_K {
  static constexpr int kElements = 256, kGroup = 16, kLeast = -32,
                       kGreatest = 31;
  static constexpr bool kHasMinimum = false;
  uint8_t nibbles[128];
  uint8_t crumbs[64];
  int8_t scales[16];
  uint16_t scale;
  void Unpack(const BlockGroups& out) const;
};

// Values as in IQ4_NL; nibbles of byte 16 g + i are elements 32 g + i (low) and
// 32 g + 16 + i.
struct BlockIQ4_XS {
  static constexpr int kElements = 256, kGroup = 32, kLeast = -127,
                       kGreatest = 113;
  static constexpr bool kHasMinimum = false;
  uint16_t scale;
  // Scale + 32 of group g: two high bits at bit 2 g, four low bits in nibble
  // g % 2 of byte g / 2.
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t nibbles[128];
  void Unpack(const BlockGroups& out) const;
};

}  // namespace penstock
