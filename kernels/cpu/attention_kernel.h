#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// Tokens of a page: the lanes of a score vector.
inline constexpr int kPageTokens = 16;

// Rotates pairs (i, i + dim / 2) of what rotates of a head.
template <class V>
void Rotate(float* head, const Rotation& rotation) {
  const int half = rotation.dim / 2;
  float* x = head + rotation.first;
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = a * rotation.cosine[i] - b * rotation.sine[i];
    x[i + half] = b * rotation.cosine[i] + a * rotation.sine[i];
  }
}

template <class V>
void RotateQuery(const RotateQueryTask& task) {
  for (int head = 0; head < task.heads; ++head) {
    float* query = task.query + size_t(head) * task.head_dim;
    Rotate<V>(query, task.rotation);
    const auto scale = V::Set(task.scale);
    for (int i = 0; i < task.head_dim; i += 16) {
      V::Store(query + i, V::Mul(V::Load(query + i), scale));
    }
  }
}

template <class V>
void WriteKv(const WriteKvTask& task) {
  float key[kMaxHeadDim];
  uint16_t halves[kMaxHeadDim];
  const int dim = task.head_dim;
  const int value_dim = task.value_dim;
  for (int head = 0; head < task.kv_heads; ++head) {
    // K [dim][16], then V [16][value_dim].
    auto* k_page = reinterpret_cast<uint16_t*>(task.page) +
                   size_t(head) * (dim + value_dim) * kPageTokens;
    uint16_t* v_page = k_page + dim * kPageTokens;
    for (int i = 0; i < dim; ++i) key[i] = task.key[size_t(head) * dim + i];
    Rotate<V>(key, task.rotation);
    for (int i = 0; i < dim; i += 16) {
      V::StoreHalf(halves + i, V::Load(key + i));
    }
    for (int i = 0; i < value_dim; i += 16) {
      V::StoreHalf(v_page + task.slot * value_dim + i,
                   V::Load(task.value + size_t(head) * value_dim + i));
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

// What the queries of a tile see of a split, counted from its start; pages
// outside have no part in it.
struct SplitRange {
  int first_token = 0;
  int tokens = 0;  // end
  int first_page() const { return first_token / kPageTokens; }
  int pages() const { return (tokens + kPageTokens - 1) / kPageTokens; }
};

// The lanes of `a` whose token, counted from the page's first, is in
// [first, last); of `b` elsewhere.
template <class V>
typename V::F32 KeepSeen(const VisibleRange& visible, int position,
                         typename V::F32 a, typename V::F32 b) {
  a = V::KeepFirst(visible.last - position, a, b);
  if (visible.first <= position) return a;
  return V::KeepFirst(visible.first - position, b, a);
}

// Scores of kQueries queries with the tokens of one split, [kQueries][split] in
// scratch, and their largest. A token that a query does not see scores -inf.
template <class V, int kQueries>
void ScoreSplit(const AttentionTask& task, int first, const SplitRange& range) {
  const int split_page = task.split * (kAttentionSplit / kPageTokens);
  const auto hidden = V::Set(-__builtin_inff());
  typename V::F32 largest[kQueries];
  for (int q = 0; q < kQueries; ++q) largest[q] = hidden;
  for (int page = range.first_page(); page < range.pages(); ++page) {
    const uint16_t* keys = KeyPage<V>(task, split_page + page);
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
    const int position = (split_page + page) * kPageTokens;
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      if (task.score_cap != 0) {
        scores[q] = SoftCap<V>(scores[q], task.score_cap);
      }
      scores[q] =
          KeepSeen<V>(task.visible[first + q], position, scores[q], hidden);
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
void WeighSplit(const AttentionTask& task, int first, const SplitRange& range) {
  const int start = task.split * kAttentionSplit;
  for (int q = 0; q < kQueries; ++q) {
    const auto max = V::Set(task.state.max[first + q]);
    auto sum = V::Zero();
    float* scores = task.scratch + q * kAttentionSplit;
    for (int page = range.first_page(); page < range.pages(); ++page) {
      float* at = scores + page * kPageTokens;
      const auto weight =
          KeepSeen<V>(task.visible[first + q], start + page * kPageTokens,
                      Exp<V>(V::Sub(V::Load(at), max)), V::Zero());
      V::Store(at, weight);
      sum = V::Add(sum, weight);
    }
    task.state.sum[first + q] = V::Sum(sum);
  }
}

// kVectors * 16 dimensions, from `dim`, of the weighted sum of values.
template <class V, int kQueries, int kVectors>
void SumValues(const AttentionTask& task, int first, const SplitRange& range,
               int dim) {
  const int split_page = task.split * (kAttentionSplit / kPageTokens);
  typename V::F32 out[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) out[q][v] = V::Zero();
  }
  for (int token = range.first_token; token < range.tokens; ++token) {
    const uint16_t* values =
        KeyPage<V>(task, split_page + token / kPageTokens) +
        kPageTokens * task.head_dim + token % kPageTokens * task.value_dim +
        dim;
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
    float* to = task.state.out + size_t(first + q) * task.value_dim + dim;
    for (int v = 0; v < kVectors; ++v) V::Store(to + v * 16, out[q][v]);
  }
}

template <class V, int kQueries>
void AttendTile(const AttentionTask& task, int first) {
  const int start = task.split * kAttentionSplit;
  SplitRange range = {kAttentionSplit, 0};
  for (int q = 0; q < kQueries; ++q) {
    const VisibleRange& visible = task.visible[first + q];
    const int from = visible.first - start;
    const int to = visible.last - start;
    range.first_token = from < range.first_token ? from : range.first_token;
    range.tokens = to > range.tokens ? to : range.tokens;
  }
  if (range.first_token < 0) range.first_token = 0;
  if (range.tokens > kAttentionSplit) range.tokens = kAttentionSplit;
  if (range.first_token >= range.tokens) return;
  ScoreSplit<V, kQueries>(task, first, range);
  WeighSplit<V, kQueries>(task, first, range);
  int dim = 0;
  for (; dim + 64 <= task.value_dim; dim += 64) {
    SumValues<V, kQueries, 4>(task, first, range, dim);
  }
  for (; dim < task.value_dim; dim += 16) {
    SumValues<V, kQueries, 1>(task, first, range, dim);
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
