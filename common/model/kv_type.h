#pragma once

#include <cstdint>

namespace penstock {

// The elements of KV pages. Plain constants only: sources that are compiled
// for one instruction set read this, too.
enum class KvType : uint8_t { kF16, kF32, kBf16, kFp8, kInt8, kInt4 };

struct KvTypeTraits {
  KvType type;
  const char* name;  // as flags say it
  // In fingerprints and on the wire. Never changes, never used again.
  uint32_t code;
  int bits;  // of an element
  // Dimensions of a head that share a scale in BF16, one for each token; 0: no
  // scales.
  int scale_group;
};

// By KvType.
inline constexpr KvTypeTraits kKvTypes[] = {
    {KvType::kF16, "f16", 2, 16, 0},   {KvType::kF32, "f32", 4, 32, 0},
    {KvType::kBf16, "bf16", 5, 16, 0}, {KvType::kFp8, "fp8", 6, 8, 0},
    {KvType::kInt8, "int8", 7, 8, 64}, {KvType::kInt4, "int4", 8, 4, 32},
};

// What a page holds of a layer and KV head: keys, their scales, values, their
// scales, each part of 16 tokens. Offsets in bytes.
struct KvHeadLayout {
  uint32_t key_scales = 0;
  uint32_t values = 0;
  uint32_t value_scales = 0;
  uint32_t bytes = 0;
};

}  // namespace penstock
