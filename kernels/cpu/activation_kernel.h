#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// The bits of a float in memory.
using Bits32 [[gnu::may_alias]] = uint32_t;

// Quantises one block of 32 elements into term `term` and returns what is left
// over in `low` and `high`.
template <class V>
[[gnu::always_inline]] inline void QuantizeTerm(typename V::F32& low,
                                                typename V::F32& high,
                                                float scale, float inverse,
                                                const Activations& out,
                                                size_t block) {
  using F32 = typename V::F32;
  const F32 factor = V::Set(inverse);
  const auto q_low = V::ToInt(V::Mul(low, factor));
  const auto q_high = V::ToInt(V::Mul(high, factor));
  V::StoreInt8(out.quants + block * kScaleDepth, q_low);
  V::StoreInt8(out.quants + block * kScaleDepth + 16, q_high);
  const int32_t sum = V::SumInt(V::AddInt(q_low, q_high));
  if (out.half_sums != nullptr) {
    const int32_t half = V::SumInt(q_low);
    out.half_sums[2 * block] = half;
    out.half_sums[2 * block + 1] = sum - half;
  }
  out.scales[block] = scale;
  out.sums[block] = sum;
  out.scaled_sums[block] = scale * static_cast<float>(sum);
  const F32 step = V::Set(-scale);
  low = V::Fma(step, V::ToFloat(q_low), low);
  high = V::Fma(step, V::ToFloat(q_high), high);
}

// Stores a block that holds NaN or infinity. Integers cannot say so; a scale
// can, and spoils all that it multiplies, down to the logits.
template <class V>
void StoreUnknown(const Activations& out, size_t block) {
  V::StoreInt8(out.quants + block * kScaleDepth, V::SetInt(0));
  V::StoreInt8(out.quants + block * kScaleDepth + 16, V::SetInt(0));
  out.scales[block] = __builtin_nanf("");
  out.sums[block] = 0;
  if (out.half_sums != nullptr) {
    out.half_sums[2 * block] = out.half_sums[2 * block + 1] = 0;
  }
  out.scaled_sums[block] = __builtin_nanf("");
}

// Stores one block of 32 elements in every form that `out` asks for.
template <class V>
[[gnu::always_inline]] inline void StoreBlock(typename V::F32 low,
                                              typename V::F32 high,
                                              const Activations& out, int row,
                                              int block) {
  if (out.values != nullptr) {
    float* values = out.values + size_t(row) * out.depth + block * kScaleDepth;
    V::Store(values, low);
    V::Store(values + 16, high);
  }
  if (out.bfloats != nullptr) {
    uint16_t* bfloats =
        out.bfloats + size_t(row) * out.depth + block * kScaleDepth;
    V::StoreBfloats(bfloats, kLeastBfloat, low);
    V::StoreBfloats(bfloats + 16, kLeastBfloat, high);
  }
  if (out.terms == 0) return;
  const size_t blocks = out.depth / kScaleDepth;
  const size_t index = size_t(row) * out.terms * blocks + block;
  if (!V::Finite(low) || !V::Finite(high)) {
    for (int term = 0; term < out.terms; ++term) {
      StoreUnknown<V>(out, index + term * blocks);
    }
    return;
  }
  // Below this the inverse could overflow; the block counts as zero.
  constexpr float kTiny = 1e-30f;
  const float largest = V::Largest(V::Max(V::Abs(low), V::Abs(high)));
  const bool zero = !(largest > kTiny);
  const float scale = zero ? 0.0f : largest / 127.0f;
  const float inverse = zero ? 0.0f : 127.0f / largest;
  QuantizeTerm<V>(low, high, scale, inverse, out, index);
  if (out.terms == 2) {
    // What is left is at most half a step.
    QuantizeTerm<V>(low, high, scale / 254.0f, inverse * 254.0f, out,
                    index + blocks);
  }
}

// Blocks of a row whose scales, as bits, reach `least`.
template <class V>
int CountReaching(const Bits32* scales, int blocks, uint32_t least) {
  int count = 0;
  for (int i = 0; i < blocks; ++i) count += scales[i] >= least;
  return count;
}

// Scales are not negative, so that their bits have their order, NaN last. The
// exponent and three bits of the mantissa tell large from small.
template <class V>
void Choose(const Activations& out, int row) {
  if (out.refined == 0) return;
  const int blocks = out.depth / kScaleDepth;
  const auto* scales = reinterpret_cast<const Bits32*>(
      out.scales + size_t(row) * out.terms * blocks);
  constexpr uint32_t kStep = 1u << 20;
  // The largest that enough of them reach.
  uint32_t least = 0;
  for (uint32_t bit = 1u << 30; bit >= kStep; bit >>= 1) {
    if (CountReaching<V>(scales, blocks, least | bit) >= out.refined) {
      least |= bit;
    }
  }
  int equals = out.refined - CountReaching<V>(scales, blocks, least + kStep);
  uint16_t* chosen = out.chosen + size_t(row) * out.refined;
  for (int block = 0; block < blocks; ++block) {
    if (scales[block] < least) continue;
    if (scales[block] < least + kStep && equals-- <= 0) continue;
    *chosen++ = static_cast<uint16_t>(block);
  }
}

template <class V>
void Quantize(const float* x, int first, int last, const Activations& out,
              int row) {
  for (int i = first; i < last; i += kScaleDepth, x += kScaleDepth) {
    StoreBlock<V>(V::Load(x), V::Load(x + 16), out, row, i / kScaleDepth);
  }
}

// 1 / sqrt(mean square + epsilon) of x [count]; NaN where that has no number.
template <class V>
[[gnu::always_inline]] inline float NormFactor(const float* x, float epsilon,
                                               int count) {
  typename V::F32 squares = V::Zero();
  for (int i = 0; i < count; i += 16) {
    const auto v = V::Load(x + i);
    squares = V::Fma(v, v, squares);
  }
  const float mean = V::Sum(squares) / static_cast<float>(count);
  if (!(mean < __builtin_inff())) return __builtin_nanf("");
  return 1.0f / __builtin_sqrtf(mean + epsilon);
}

template <class V>
void Normalize(const float* x, const float* gain, float epsilon,
               const Activations& out, int row) {
  const auto factor = V::Set(NormFactor<V>(x, epsilon, out.depth));
  for (int i = 0; i < out.depth; i += kScaleDepth) {
    const auto low = V::Mul(V::Mul(V::Load(x + i), factor), V::Load(gain + i));
    const auto high =
        V::Mul(V::Mul(V::Load(x + i + 16), factor), V::Load(gain + i + 16));
    StoreBlock<V>(low, high, out, row, i / kScaleDepth);
  }
  Choose<V>(out, row);
}

template <class V>
void NormalizeInPlace(float* x, const float* gain, float epsilon, int count) {
  const auto factor = V::Set(NormFactor<V>(x, epsilon, count));
  for (int i = 0; i < count; i += 16) {
    V::Store(x + i, V::Mul(V::Mul(V::Load(x + i), factor), V::Load(gain + i)));
  }
}

template <class V>
void AddScaled(const float* x, float scale, int count, float* to) {
  const auto factor = V::Set(scale);
  for (int i = 0; i < count; i += 16) {
    V::Store(to + i, V::Fma(V::Load(x + i), factor, V::Load(to + i)));
  }
}

template <class V>
void SoftCapAll(float* x, float scale, float cap, int count) {
  for (int i = 0; i < count; i += 16) {
    const auto scaled = V::Mul(V::Load(x + i), V::Set(scale));
    V::Store(x + i, cap == 0 ? scaled : SoftCap<V>(scaled, cap));
  }
}

}  // namespace penstock
