#pragma once

#include <type_traits>

#include "kernels/cpu/kernel_table.h"

namespace penstock {

// Tokens of a page: the lanes of a run of keys, and of scales.
inline constexpr int kPageTokens = 16;

// How pages hold one type of KV. Runs of 16 elements lie one after the other:
// one for each dimension of the keys, each with the 16 tokens of the page; for
// each 16 dimensions of a token's values.
template <class V, KvType kType>
struct KvCodec {
  using F32 = typename V::F32;
  static constexpr KvTypeTraits kTraits = kKvTypes[static_cast<int>(kType)];
  static constexpr bool kScaled = kTraits.scale_group != 0;
  // Two runs share their bytes.
  static constexpr bool kPaired = kTraits.bits == 4;

  // Of 16 elements; of an even count, where runs are paired.
  static constexpr size_t RunBytes(int runs) {
    return size_t(runs) * (2 * kTraits.bits);
  }

  // Run `index` of those from `runs` on, without its scale.
  static F32 Load(const uint8_t* runs, int index) {
    if constexpr (kPaired) {
      return V::LoadNibbles(runs + index / 2 * 16, index % 2 != 0);
    } else {
      const uint8_t* run = runs + RunBytes(index);
      if constexpr (kType == KvType::kF16) return V::LoadHalf(AsHalves(run));
      if constexpr (kType == KvType::kBf16) {
        return V::LoadBfloat16(AsHalves(run));
      }
      if constexpr (kType == KvType::kFp8) return V::LoadFp8(run);
      if constexpr (kType == KvType::kInt8) return V::LoadInt8(run);
    }
  }

  // Of the 16 tokens, for a group of dimensions.
  static F32 LoadScales(const uint8_t* scales, int group) {
    return V::LoadBfloat16(AsHalves(scales) + group * kPageTokens);
  }

  // An element by itself, before it is put into its run; a nibble has a byte.
  using Element = std::conditional_t<kTraits.bits == 16, uint16_t, uint8_t>;

  // The vector x [dim] of the token `slot`; writes its scales.
  static void Encode(const float* x, int dim, int slot, Element* elements,
                     uint8_t* scales) {
    if constexpr (!kScaled) {
      for (int i = 0; i < dim; i += 16) Narrow(V::Load(x + i), elements + i);
    } else {
      constexpr int kGroup = kTraits.scale_group;
      for (int at = 0; at < dim; at += kGroup) {
        const int count = dim - at < kGroup ? dim - at : kGroup;
        const uint16_t scale = ScaleOf(x + at, count);
        auto* to = reinterpret_cast<uint16_t*>(scales);
        to[at / kGroup * kPageTokens + slot] = scale;
        const F32 inverse = V::Set(InverseOf(scale));
        for (int i = at; i < at + count; i += 16) {
          Narrow(V::Mul(V::Load(x + i), inverse), elements + i);
        }
      }
    }
  }

  // Keys of a token: one lane of every run.
  static void PutKeys(const Element* elements, int dim, int slot,
                      uint8_t* keys) {
    auto* to = reinterpret_cast<Element*>(keys);
    if constexpr (kPaired) {
      for (int i = 0; i < dim; i += 2) {
        to[i / 2 * kPageTokens + slot] = elements[i] | elements[i + 1] << 4;
      }
    } else {
      for (int i = 0; i < dim; ++i) to[i * kPageTokens + slot] = elements[i];
    }
  }

  // Values of a token: whole runs. The last of an odd count has no other half.
  static void PutValues(const Element* elements, int dim, int slot,
                        const KvHeadLayout& layout, uint8_t* page) {
    auto* to = reinterpret_cast<Element*>(page + layout.values +
                                          slot * ValueBytes(layout));
    if constexpr (kPaired) {
      for (int i = 0; i < dim; ++i) {
        const bool high = i / 16 % 2 != 0;
        uint8_t& both = to[i / 32 * 16 + i % 16];
        both = high ? both | elements[i] << 4 : elements[i];
      }
    } else {
      for (int i = 0; i < dim; ++i) to[i] = elements[i];
    }
  }

  // Of one token.
  static size_t ValueBytes(const KvHeadLayout& layout) {
    return (layout.value_scales - layout.values) / kPageTokens;
  }

 private:
  static const uint16_t* AsHalves(const uint8_t* p) {
    return reinterpret_cast<const uint16_t*>(p);
  }

  static void Narrow(F32 x, Element* to) {
    if constexpr (kType == KvType::kF16) V::StoreHalf(to, x);
    if constexpr (kType == KvType::kBf16) V::StoreBfloat16(to, x);
    if constexpr (kType == KvType::kFp8) V::StoreFp8(to, x);
    if constexpr (kType == KvType::kInt8) {
      V::StoreInt8(reinterpret_cast<int8_t*>(to), V::ToInt(x));
    }
    if constexpr (kType == KvType::kInt4) {
      const auto code = V::ToInt(V::Min(x, V::Set(7.0f)));
      V::StoreInt8(reinterpret_cast<int8_t*>(to),
                   V::AddInt(code, V::SetInt(8)));
    }
  }

  // As the comment in kernel_table.h has it.
  static uint16_t ScaleOf(const float* x, int count) {
    F32 largest = V::Set(0.0f);
    F32 most_negative = largest;
    bool finite = true;
    for (int i = 0; i < count; i += 16) {
      const F32 some = V::Load(x + i);
      largest = V::Max(some, largest);
      most_negative = V::Max(V::Sub(V::Zero(), some), most_negative);
      finite = finite && V::Finite(some);
    }
    if (!finite) return 0x7fc0;
    const float up = V::Largest(largest);
    const float down = V::Largest(most_negative);
    const float magnitude = up > down ? up : down;
    if (magnitude < 0x1p-100f) return 0;
    if constexpr (kTraits.bits == 8) return AwayFromZero(magnitude / 127.0f);
    return AwayFromZero(up > down ? up / -8.0f : down / 8.0f);
  }

  static uint16_t AwayFromZero(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return static_cast<uint16_t>((bits + 0xffff) >> 16);
  }

  static float InverseOf(uint16_t scale) {
    const uint32_t bits = uint32_t{scale} << 16;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value == 0 ? 0.0f : 1.0f / value;
  }
};

}  // namespace penstock
