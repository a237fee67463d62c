#pragma once

#include <cstddef>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

template <class V>
float ExpOf(float x) {
  float lanes[16];
  V::Store(lanes, Exp<V>(V::Set(x)));
  return lanes[0];
}

template <class V>
void MergeState(const AttentionState& into, const AttentionState& later,
                int query, int value_dim) {
  const float max =
      later.max[query] > into.max[query] ? later.max[query] : into.max[query];
  const float keep = ExpOf<V>(into.max[query] - max);
  const float take = ExpOf<V>(later.max[query] - max);
  into.max[query] = max;
  into.sum[query] = into.sum[query] * keep + later.sum[query] * take;
  float* to = into.out + size_t(query) * value_dim;
  const float* from = later.out + size_t(query) * value_dim;
  for (int i = 0; i < value_dim; i += 16) {
    const auto kept = V::Mul(V::Load(to + i), V::Set(keep));
    V::Store(to + i, V::Fma(V::Load(from + i), V::Set(take), kept));
  }
}

template <class V>
void FinishState(const AttentionState& state, int query, int value_dim,
                 float* out) {
  const auto factor = V::Set(1.0f / state.sum[query]);
  const float* from = state.out + size_t(query) * value_dim;
  for (int i = 0; i < value_dim; i += 16) {
    V::Store(out + i, V::Mul(V::Load(from + i), factor));
  }
}

}  // namespace penstock
