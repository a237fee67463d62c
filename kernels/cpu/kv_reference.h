#pragma once

#include <cstdint>

#include "common/model/kv_layout.h"

namespace penstock {

// The elements of KV pages by their definition, slowly and in double: what
// tests hold the kernels to.

// What the bits of an element mean, without a scale.
double KvNumber(KvType type, uint32_t element);

// The nearest number of F16, BF16 or FP8 to x, ties to even. Too large becomes
// infinity; in FP8 448.
double RoundToKvType(KvType type, double x);

// Reads what a page holds of one layer and KV head. Owns nothing.
class KvHeadReader {
 public:
  KvHeadReader(const KvLayout& layout, const uint8_t* page)
      : layout_(layout), head_(layout.head()), page_(page) {}

  double Key(int slot, int i) const;
  double Value(int slot, int i) const;
  // Without their scales, and those.
  double KeyNumber(int slot, int i) const;
  double ValueNumber(int slot, int i) const;
  double KeyScale(int slot, int i) const;
  double ValueScale(int slot, int i) const;

 private:
  double Number(uint32_t runs, int run, int lane) const;
  double Scale(uint32_t scales, int slot, int i) const;

  const KvLayout layout_;
  const KvHeadLayout head_;
  const uint8_t* page_;
};

}  // namespace penstock
