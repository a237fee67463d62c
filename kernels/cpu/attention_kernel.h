#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// Tokens of a page: the lanes of a score vector.
inline constexpr int kPageTokens = 16;

// Rotates pairs (i, i + dim / 2) of x [dim].
template <class V>
void Rotate(float* x, int dim, const float* cosine, const float* sine) {
  const int half = dim / 2;
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = a * cosine[i] - b * sine[i];
    x[i + half] = b * cosine[i] + a * sine[i];
  }
}

template <class V>
void RotateQuery(const RotateQueryTask& task) {
  for (int head = 0; head < task.heads; ++head) {
    float* query = task.query + size_t(head) * task.head_dim;
    Rotate<V>(query, task.rope_dim, task.cosine, task.sine);
    const auto scale = V::Set(task.scale);
    for (int i = 0; i < task.head_dim; i += 16) {
      V::Store(query + i, V::Mul(V::Load(query + i), scale));
    }
  }
}

template <class V>
void WriteKv(const WriteKvTask& task) {
  constexpr int kMostDims = 512;  // checked where the model is loaded
  float key[kMostDims];
  uint16_t halves[kMostDims];
  const int dim = task.head_dim;
  for (int head = 0; head < task.kv_heads; ++head) {
    // K [dim][16], then V [16][dim].
    auto* k_page = reinterpret_cast<uint16_t*>(task.page) +
                   size_t(head) * 2 * dim * kPageTokens;
    uint16_t* v_page = k_page + dim * kPageTokens;
    for (int i = 0; i < dim; ++i) key[i] = task.key[size_t(head) * dim + i];
    Rotate<V>(key, task.rope_dim, task.cosine, task.sine);
    for (int i = 0; i < dim; i += 16) {
      V::StoreHalf(halves + i, V::Load(key + i));
      V::StoreHalf(v_page + task.slot * dim + i,
                   V::Load(task.value + size_t(head) * dim + i));
    }
    for (int i = 0; i < dim; ++i) {
      k_page[i * kPageTokens + task.slot] = halves[i];
    }
  }
}

template <class V>
const uint16_t* KeyPage(const AttentionTask& task, int block) {
  return reinterpret_cast<const uint16_t*>(task.pages + task.blocks[block] *
                                                            task.page_stride);
}

// Scores of kQueries queries with the tokens of one split, [kQueries][split] in
// scratch, and their largest. A token that a query does not see scores -inf.
template <class V, int kQueries>
void ScoreSplit(const AttentionTask& task, int first, int pages) {
  const int first_page = task.split * (kAttentionSplit / kPageTokens);
  const auto hidden = V::Set(-__builtin_inff());
  typename V::F32 largest[kQueries];
  for (int q = 0; q < kQueries; ++q) largest[q] = hidden;
  for (int page = 0; page < pages; ++page) {
    const uint16_t* keys = KeyPage<V>(task, first_page + page);
    typename V::F32 scores[kQueries];
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) scores[q] = V::Zero();
    for (int i = 0; i < task.head_dim; ++i) {
      const auto key = V::LoadHalf(keys + i * kPageTokens);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        scores[q] = V::Fma(V::Set(task.query[first + q][i]), key, scores[q]);
      }
    }
    const int position = (first_page + page) * kPageTokens;
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const int seen = task.visible[first + q] - position;
      scores[q] = V::KeepFirst(seen, scores[q], hidden);
      largest[q] = V::Max(scores[q], largest[q]);
      V::Store(task.scratch + q * kAttentionSplit + page * kPageTokens,
               scores[q]);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    task.state.max[first + q] = V::Largest(largest[q]);
  }
}

// Turns scores into weights exp(score - max), zero where nothing is seen, and
// sums them.
template <class V, int kQueries>
void WeighSplit(const AttentionTask& task, int first, int pages) {
  const int start = task.split * kAttentionSplit;
  for (int q = 0; q < kQueries; ++q) {
    const auto max = V::Set(task.state.max[first + q]);
    auto sum = V::Zero();
    float* scores = task.scratch + q * kAttentionSplit;
    for (int page = 0; page < pages; ++page) {
      float* at = scores + page * kPageTokens;
      const int seen = task.visible[first + q] - start - page * kPageTokens;
      const auto weight =
          V::KeepFirst(seen, Exp<V>(V::Sub(V::Load(at), max)), V::Zero());
      V::Store(at, weight);
      sum = V::Add(sum, weight);
    }
    task.state.sum[first + q] = V::Sum(sum);
  }
}

// kVectors * 16 dimensions, from `dim`, of the weighted sum of values.
template <class V, int kQueries, int kVectors>
void SumValues(const AttentionTask& task, int first, int tokens, int dim) {
  const int first_page = task.split * (kAttentionSplit / kPageTokens);
  typename V::F32 out[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) out[q][v] = V::Zero();
  }
  for (int token = 0; token < tokens; ++token) {
    const uint16_t* values =
        KeyPage<V>(task, first_page + token / kPageTokens) +
        (kPageTokens + token % kPageTokens) * task.head_dim + dim;
    typename V::F32 value[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) value[v] = V::LoadHalf(values + v * 16);
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const auto weight = V::Set(task.scratch[q * kAttentionSplit + token]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        out[q][v] = V::Fma(weight, value[v], out[q][v]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    float* to = task.state.out + size_t(first + q) * task.head_dim + dim;
    for (int v = 0; v < kVectors; ++v) V::Store(to + v * 16, out[q][v]);
  }
}

template <class V, int kQueries>
void AttendTile(const AttentionTask& task, int first) {
  const int start = task.split * kAttentionSplit;
  int tokens = 0;  // of the split, that some query of the tile sees
  for (int q = 0; q < kQueries; ++q) {
    const int seen = task.visible[first + q] - start;
    tokens = seen > tokens ? seen : tokens;
  }
  if (tokens == 0) return;
  if (tokens > kAttentionSplit) tokens = kAttentionSplit;
  const int pages = (tokens + kPageTokens - 1) / kPageTokens;
  ScoreSplit<V, kQueries>(task, first, pages);
  WeighSplit<V, kQueries>(task, first, pages);
  int dim = 0;
  for (; dim + 64 <= task.head_dim; dim += 64) {
    SumValues<V, kQueries, 4>(task, first, tokens, dim);
  }
  for (; dim < task.head_dim; dim += 16) {
    SumValues<V, kQueries, 1>(task, first, tokens, dim);
  }
}

template <class V, int kQueries = V::kQueryTile>
void AttendRest(const AttentionTask& task, int first, int queries) {
  if (queries == kQueries) return AttendTile<V, kQueries>(task, first);
  if constexpr (kQueries > 1) AttendRest<V, kQueries - 1>(task, first, queries);
}

template <class V>
void Attend(const AttentionTask& task) {
  static_assert(V::kQueryTile <= kMaxQueryTile);
  for (int first = 0; first < task.queries; first += V::kQueryTile) {
    const int left = task.queries - first;
    AttendRest<V>(task, first, left < V::kQueryTile ? left : V::kQueryTile);
  }
}

template <class V>
float ExpOf(float x) {
  float lanes[16];
  V::Store(lanes, Exp<V>(V::Set(x)));
  return lanes[0];
}

template <class V>
void MergeState(const AttentionState& into, const AttentionState& later,
                int query, int head_dim) {
  const float max =
      later.max[query] > into.max[query] ? later.max[query] : into.max[query];
  const float keep = ExpOf<V>(into.max[query] - max);
  const float take = ExpOf<V>(later.max[query] - max);
  into.max[query] = max;
  into.sum[query] = into.sum[query] * keep + later.sum[query] * take;
  float* to = into.out + size_t(query) * head_dim;
  const float* from = later.out + size_t(query) * head_dim;
  for (int i = 0; i < head_dim; i += 16) {
    const auto kept = V::Mul(V::Load(to + i), V::Set(keep));
    V::Store(to + i, V::Fma(V::Load(from + i), V::Set(take), kept));
  }
}

template <class V>
void FinishState(const AttentionState& state, int query, int head_dim,
                 float* out) {
  const auto factor = V::Set(1.0f / state.sum[query]);
  const float* from = state.out + size_t(query) * head_dim;
  for (int i = 0; i < head_dim; i += 16) {
    V::Store(out + i, V::Mul(V::Load(from + i), factor));
  }
}

}  // namespace penstock
