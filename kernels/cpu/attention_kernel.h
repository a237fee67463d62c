#pragma once

#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kv_codec.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

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

template <class V, KvType kType>
void WriteKv(const WriteKvTask& task) {
  using Kv = KvCodec<V, kType>;
  float key[kMaxHeadDim];
  typename Kv::Element elements[kMaxHeadDim];
  const int dim = task.head_dim;
  const int value_dim = task.value_dim;
  for (int head = 0; head < task.kv_heads; ++head) {
    uint8_t* page = task.page + size_t(head) * task.layout.bytes;
    for (int i = 0; i < dim; ++i) key[i] = task.key[size_t(head) * dim + i];
    Rotate<V>(key, task.rotation);
    Kv::Encode(key, dim, task.slot, elements, page + task.layout.key_scales);
    Kv::PutKeys(elements, dim, task.slot, page);
    Kv::Encode(task.value + size_t(head) * value_dim, value_dim, task.slot,
               elements, page + task.layout.value_scales);
    Kv::PutValues(elements, value_dim, task.slot, task.layout, page);
  }
}

inline constexpr int kSplitPages = kAttentionSplit / kPageTokens;

// Page `page` of the task's split.
template <class V>
const uint8_t* SplitPage(const AttentionTask& task, int page) {
  return task.pages +
         task.blocks[task.split * kSplitPages + page] * task.page_stride;
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
  if (visible.first <= position && position + kPageTokens <= visible.last) {
    return a;
  }
  a = V::KeepFirst(visible.last - position, a, b);
  if (visible.first <= position) return a;
  return V::KeepFirst(visible.first - position, b, a);
}

// scores[p][q] += query q times dimensions [begin, end) of the keys of page p,
// without scales.
template <class V, KvType kType, int kQueries, int kPages>
[[gnu::always_inline]] inline void DotKeys(
    const float* const* query, const uint8_t* const (&pages)[kPages], int begin,
    int end, typename V::F32 (&scores)[kPages][kQueries]) {
  using Kv = KvCodec<V, kType>;
  for (int pair = begin; pair < end; pair += 2) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      typename V::F32 key[kPages];
#pragma GCC unroll 2
      for (int p = 0; p < kPages; ++p) {
        key[p] = Kv::Load(pages[p] + Kv::RunBytes(pair), i);
      }
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const auto x = V::Set(query[q][pair + i]);
#pragma GCC unroll 2
        for (int p = 0; p < kPages; ++p) {
          scores[p][q] = V::Fma(x, key[p], scores[p][q]);
        }
      }
    }
  }
}

template <class V, int kQueries, int kPages>
[[gnu::always_inline]] inline void SetZero(
    typename V::F32 (&scores)[kPages][kQueries]) {
#pragma GCC unroll 2
  for (int p = 0; p < kPages; ++p) {
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) scores[p][q] = V::Zero();
  }
}

// Scores of kQueries queries with the tokens of kPages pages of a split.
template <class V, KvType kType, int kQueries, int kPages>
[[gnu::always_inline]] inline void ScorePages(
    const AttentionTask& task, int first, int page,
    typename V::F32 (&scores)[kPages][kQueries]) {
  using Kv = KvCodec<V, kType>;
  const float* const* query = task.query + first;
  const uint8_t* pages[kPages];
  for (int p = 0; p < kPages; ++p) pages[p] = SplitPage<V>(task, page + p);
  SetZero<V>(scores);
  if constexpr (!Kv::kScaled) {
    DotKeys<V, kType>(query, pages, 0, task.head_dim, scores);
    return;
  }
  constexpr int kGroup = Kv::kScaled ? Kv::kTraits.scale_group : 1;
  for (int at = 0; at < task.head_dim; at += kGroup) {
    const int end = at + kGroup < task.head_dim ? at + kGroup : task.head_dim;
    typename V::F32 part[kPages][kQueries];
    SetZero<V>(part);
    DotKeys<V, kType>(query, pages, at, end, part);
#pragma GCC unroll 2
    for (int p = 0; p < kPages; ++p) {
      const auto scales =
          Kv::LoadScales(pages[p] + task.layout.key_scales, at / kGroup);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        scores[p][q] = V::Fma(part[p][q], scales, scores[p][q]);
      }
    }
  }
}

// Scores of some pages of a split into scratch, [kQueries][split], and the
// largest seen. A token that a query does not see scores -inf.
template <class V, KvType kType, int kQueries, int kPages>
void KeepScores(const AttentionTask& task, int first, int page,
                typename V::F32 (&largest)[kQueries]) {
  typename V::F32 scores[kPages][kQueries];
  ScorePages<V, kType>(task, first, page, scores);
#pragma GCC unroll 2
  for (int p = 0; p < kPages; ++p) {
    const int position = (task.split * kSplitPages + page + p) * kPageTokens;
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      auto score = scores[p][q];
      if (task.score_cap != 0) score = SoftCap<V>(score, task.score_cap);
      score = KeepSeen<V>(task.visible[first + q], position, score,
                          V::Set(-__builtin_inff()));
      largest[q] = V::Max(score, largest[q]);
      V::Store(task.scratch + q * kAttentionSplit + (page + p) * kPageTokens,
               score);
    }
  }
}

// Scores of kQueries queries with the tokens of one split, and their largest.
// Two pages at a time, so that sums do not wait for themselves.
template <class V, KvType kType, int kQueries>
void ScoreSplit(const AttentionTask& task, int first, const SplitRange& range) {
  typename V::F32 largest[kQueries];
  for (int q = 0; q < kQueries; ++q) largest[q] = V::Set(-__builtin_inff());
  int page = range.first_page();
  for (; page + 2 <= range.pages(); page += 2) {
    KeepScores<V, kType, kQueries, 2>(task, first, page, largest);
  }
  if (page < range.pages()) {
    KeepScores<V, kType, kQueries, 1>(task, first, page, largest);
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

// The weights of kQueries queries times the scales of a group of values.
template <class V, KvType kType, int kQueries>
void ScaleWeights(const AttentionTask& task, const SplitRange& range, int group,
                  float* scaled) {
  for (int page = range.first_page(); page < range.pages(); ++page) {
    const auto scales = KvCodec<V, kType>::LoadScales(
        SplitPage<V>(task, page) + task.layout.value_scales, group);
    for (int q = 0; q < kQueries; ++q) {
      const int at = q * kAttentionSplit + page * kPageTokens;
      V::Store(scaled + at, V::Mul(V::Load(task.scratch + at), scales));
    }
  }
}

// Tokens of the split that every query of the tile sees, from `first` on.
template <int kQueries>
SplitRange SeenByAll(const AttentionTask& task, int first,
                     const SplitRange& range) {
  const int start = task.split * kAttentionSplit;
  SplitRange all = range;
  for (int q = 0; q < kQueries; ++q) {
    const int from = task.visible[first + q].first - start;
    const int to = task.visible[first + q].last - start;
    all.first_token = from > all.first_token ? from : all.first_token;
    all.tokens = to < all.tokens ? to : all.tokens;
  }
  return all;
}

// Bit q says whether query q of the tile sees a position.
template <int kQueries>
uint32_t SeeingQueries(const VisibleRange* visible, int position) {
  uint32_t seeing = 0;
  for (int q = 0; q < kQueries; ++q) {
    const bool sees =
        visible[q].first <= position && position < visible[q].last;
    seeing |= uint32_t{sees} << q;
  }
  return seeing;
}

// out += a token's value, weighted, of the queries that see it: others would
// take NaN of an infinite value, whatever it weighs. kShared vectors share a
// scale, and so one of `weights`.
template <class V, int kShared, int kQueries, int kVectors>
[[gnu::always_inline]] inline void AddValue(
    const typename V::F32 (&value)[kVectors],
    const float* const (&weights)[kVectors / kShared], int token,
    uint32_t seeing, typename V::F32 (&out)[kQueries][kVectors]) {
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    if ((seeing >> q & 1) == 0) continue;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto weight =
          V::Set(weights[v / kShared][q * kAttentionSplit + token]);
      out[q][v] = V::Fma(weight, value[v], out[q][v]);
    }
  }
}

// kVectors * 16 dimensions, from `dim`, of the weighted sum of values.
template <class V, KvType kType, int kQueries, int kVectors>
void SumValues(const AttentionTask& task, int first, const SplitRange& range,
               int dim) {
  using Kv = KvCodec<V, kType>;
  // Vectors that share a scale.
  constexpr int kShared = Kv::kScaled && kVectors * 16 > Kv::kTraits.scale_group
                              ? Kv::kTraits.scale_group / 16
                              : kVectors;
  constexpr int kGroups = kVectors / kShared;
  alignas(
      64) float scaled[kGroups][Kv::kScaled ? kQueries * kAttentionSplit : 1];
  const float* weights[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    weights[g] = task.scratch;
    if constexpr (Kv::kScaled) {
      ScaleWeights<V, kType, kQueries>(
          task, range, dim / Kv::kTraits.scale_group + g, scaled[g]);
      weights[g] = scaled[g];
    }
  }
  typename V::F32 out[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) out[q][v] = V::Zero();
  }
  const size_t value_bytes = Kv::ValueBytes(task.layout);
  // Of the two runs that may share bytes, begins with the second.
  const int odd = kVectors % 2 == 0 ? 0 : dim / 16 % 2;
  const size_t start = task.layout.values + Kv::RunBytes(dim / 16 - odd);
  const SplitRange all = SeenByAll<kQueries>(task, first, range);
  for (int token = range.first_token; token < range.tokens; ++token) {
    const uint8_t* values = SplitPage<V>(task, token / kPageTokens) + start +
                            token % kPageTokens * value_bytes;
    typename V::F32 value[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      value[v] = Kv::Load(values, odd + v);
    }
    if (token >= all.first_token && token < all.tokens) {
      AddValue<V, kShared>(value, weights, token, ~0u, out);
    } else {
      const int position = task.split * kAttentionSplit + token;
      AddValue<V, kShared>(
          value, weights, token,
          SeeingQueries<kQueries>(task.visible + first, position), out);
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    float* to = task.state.out + size_t(first + q) * task.value_dim + dim;
    for (int v = 0; v < kVectors; ++v) V::Store(to + v * 16, out[q][v]);
  }
}

template <class V, KvType kType, int kQueries>
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
  ScoreSplit<V, kType, kQueries>(task, first, range);
  WeighSplit<V, kQueries>(task, first, range);
  int dim = 0;
  for (; dim + 64 <= task.value_dim; dim += 64) {
    SumValues<V, kType, kQueries, 4>(task, first, range, dim);
  }
  for (; dim < task.value_dim; dim += 16) {
    SumValues<V, kType, kQueries, 1>(task, first, range, dim);
  }
}

template <class V, KvType kType, int kQueries = V::kQueryTile>
void AttendRest(const AttentionTask& task, int first, int queries) {
  if (queries == kQueries) return AttendTile<V, kType, kQueries>(task, first);
  if constexpr (kQueries > 1) {
    AttendRest<V, kType, kQueries - 1>(task, first, queries);
  }
}

template <class V, KvType kType>
void Attend(const AttentionTask& task) {
  static_assert(V::kQueryTile <= kMaxQueryTile);
  for (int first = 0; first < task.queries; first += V::kQueryTile) {
    const int left = task.queries - first;
    AttendRest<V, kType>(task, first,
                         left < V::kQueryTile ? left : V::kQueryTile);
  }
}

}  // namespace penstock
