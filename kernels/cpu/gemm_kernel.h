#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// A tile is kRows rows of x by kPanels panels of weights, its sums in
// registers.

// A block is 32 elements along the depth.

constexpr int BlockBytes(const PanelTraits& format) {
  return kPanelColumns * kScaleDepth / (format.packed ? 2 : 1);
}

// What a tile that streams panels from memory fetches meanwhile: what it reads
// so far ahead, on to the panels that are read next.
struct PanelFetch {
  size_t data_bytes = 0;  // of a panel, read from its start to its end
  size_t next_panel = 0;  // bytes to the panel that is read next

  // In bytes from the panel, while what is at `at` is multiplied. Few rows take
  // so little time that the processor's own reading ahead does its part.
  template <int kRows>
  size_t Ahead(size_t at) const {
    const size_t ahead = at + (kRows <= 2 ? 2048 : 4096);
    return ahead < data_bytes ? ahead : ahead - data_bytes + next_panel;
  }
};

// The panels of a tile and the rows it multiplies.
template <int kRows, int kPanels>
struct TileInput {
  const uint8_t* data[kPanels];    // blocks of the panel
  const uint8_t* scales[kPanels];  // the planes
  const uint8_t* minima[kPanels];  // where there are any
  const int8_t* quants[kRows];     // [depth]
  size_t side[kRows];  // of the row's first block in scales and sums of x
  bool fetches;        // the panels come from memory
  PanelFetch fetch;
};

// dots += x * w of one quad of every column.
template <class V, PanelTraits kFormat, int kRows, int kPanels>
[[gnu::always_inline]] inline void DotQuad(
    const TileInput<kRows, kPanels>& in, int element,
    const typename V::Bytes (&w)[kPanels],
    typename V::I32 (&dots)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto x = V::LoadQuad(in.quants[r] + element);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      dots[r][p] = kFormat.small ? V::DotSmall(dots[r][p], w[p], x)
                                 : V::Dot(dots[r][p], w[p], x);
    }
  }
}

// dots += x * w over group `half` of a block, or over all of it where a block
// is one group.
template <class V, PanelTraits kFormat, int kRows, int kPanels>
[[gnu::always_inline]] inline void DotGroup(
    const TileInput<kRows, kPanels>& in, int block, int half,
    typename V::I32 (&dots)[kRows][kPanels]) {
  constexpr bool kWhole = kFormat.group == kScaleDepth;
  constexpr int kQuads = kFormat.packed || !kWhole ? 4 : 8;
  const int first = kFormat.packed ? 0 : half * kQuads;
  const int element = block * kScaleDepth + half * kQuads * 4;
  // The second group of nibbles lies in the lines of the first.
  const bool fetches = in.fetches && !(kFormat.packed && half == 1);
  const size_t ahead =
      in.fetch.template Ahead<kRows>(block * size_t{BlockBytes(kFormat)}) +
      first * 64;
#pragma GCC unroll 8
  for (int quad = 0; quad < kQuads; ++quad) {
    typename V::Bytes low[kPanels], high[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at =
          in.data[p] + block * BlockBytes(kFormat) + (first + quad) * 64;
      if (fetches) V::Prefetch(in.data[p] + ahead + quad * 64);
      low[p] = V::LoadBytes(at);
      if constexpr (kFormat.packed) {
        high[p] = V::HighNibbles(low[p]);
        low[p] = V::LowNibbles(low[p]);
      }
    }
    const int at = element + 4 * quad;
    if constexpr (!kFormat.packed) {
      DotQuad<V, kFormat>(in, at, low, dots);
    } else if constexpr (kWhole) {
      DotQuad<V, kFormat>(in, at, low, dots);
      DotQuad<V, kFormat>(in, at + 16, high, dots);
    } else {
      DotQuad<V, kFormat>(in, at, half == 0 ? low : high, dots);
    }
  }
}

template <class V, PanelTraits kFormat>
typename V::F32 LoadOfPlane(const uint8_t* plane, int group) {
  const uint8_t* at = plane + group * kPanelColumns * kFormat.element_bytes;
  if constexpr (kFormat.element_bytes == 2) {
    return V::LoadHalf(reinterpret_cast<const uint16_t*>(at));
  } else {
    return V::Load(reinterpret_cast<const float*>(at));
  }
}

// sums += x * weights^T over group `half` of a block, or over all of it where a
// block is one group.
template <class V, PanelTraits kFormat, int kRows, int kPanels>
[[gnu::always_inline]] inline void MultiplyGroup(
    const TileInput<kRows, kPanels>& in, const Activations& x, int block,
    int half, typename V::F32 (&sums)[kRows][kPanels]) {
  constexpr bool kWhole = kFormat.group == kScaleDepth;
  const int group = kWhole ? block : 2 * block + half;
  typename V::I32 dots[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    // Taking the zero point off the sum makes signedness free.
    int32_t start = 0;
    if constexpr (kFormat.zero_point != 0) {
      start =
          -kFormat.zero_point * (kWhole ? x.sums[in.side[r] + block]
                                        : x.half_sums[2 * in.side[r] + group]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) dots[r][p] = V::SetInt(start);
  }
  DotGroup<V, kFormat>(in, block, half, dots);
  const size_t ahead = in.fetch.next_panel +
                       group * size_t{kPanelColumns} * kFormat.element_bytes;
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    if (in.fetches) V::Prefetch(in.scales[p] + ahead);
    const auto scale = LoadOfPlane<V, kFormat>(in.scales[p], group);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto scaled = V::Mul(V::ToFloat(dots[r][p]), scale);
      const auto x_scale = V::Set(x.scales[in.side[r] + block]);
      sums[r][p] = V::Fma(scaled, x_scale, sums[r][p]);
    }
    if constexpr (kFormat.has_minimum) {
      if (in.fetches) V::Prefetch(in.minima[p] + ahead);
      const auto min = LoadOfPlane<V, kFormat>(in.minima[p], group);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const size_t at = in.side[r] + block;
        const float x_sum =
            kWhole
                ? x.scaled_sums[at]
                : x.scales[at] *
                      static_cast<float>(x.half_sums[2 * in.side[r] + group]);
        sums[r][p] = V::Fma(min, V::Set(x_sum), sums[r][p]);
      }
    }
  }
}

// The same over all blocks, in order.
template <class V, PanelTraits kFormat, int kRows, int kPanels>
[[gnu::always_inline]] inline void MultiplyBlocks(
    const TileInput<kRows, kPanels>& in, const Activations& x,
    typename V::F32 (&sums)[kRows][kPanels]) {
  const int blocks = x.depth / kScaleDepth;
  for (int block = 0; block < blocks; ++block) {
#pragma GCC unroll 2
    for (int half = 0; half < kScaleDepth / kFormat.group; ++half) {
      MultiplyGroup<V, kFormat>(in, x, block, half, sums);
    }
  }
}

// Writes the rows of a tile.
template <class V, int kRows, int kPanels>
[[gnu::always_inline]] inline void FinishTile(
    const GemmTask& task, int row, int panel,
    typename V::F32 (&sums)[kRows][kPanels]) {
  const float* bias = task.weights->bias;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const size_t start = size_t(row + r) * task.y_stride;  // in y
    if (bias != nullptr) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] =
            V::Add(sums[r][p], V::Load(bias + (panel + p) * kPanelColumns));
      }
    }
    if (task.epilogue >= Epilogue::kGatedSilu) {
      const bool silu = task.epilogue == Epilogue::kGatedSilu;
#pragma GCC unroll 4
      for (int p = 0; p + 1 < kPanels; p += 2) {
        const auto gate = silu ? Silu<V>(sums[r][p]) : GeluTanh<V>(sums[r][p]);
        const auto gated = V::Mul(gate, sums[r][p + 1]);
        const int column = (panel + p) / 2 * kPanelColumns;
        if (task.bfloats == nullptr) {
          V::Store(task.y + start + column, gated);
        } else {
          V::StoreBfloats(task.bfloats + start + column, kLeastBfloat, gated);
        }
      }
      continue;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* at = task.y + start + (panel + p) * kPanelColumns;
      V::Store(at, task.epilogue == Epilogue::kAdd
                       ? V::Fma(sums[r][p], V::Set(task.scale), V::Load(at))
                       : sums[r][p]);
    }
  }
}

// One tile of quantised weights.
struct BlockTile {
  const GemmTask* task = nullptr;
  int row = 0;
  int panel = 0;
  bool fetches = false;  // see TileInput
};

// The panels of a tile, and term `term` of its rows.
template <int kRows, int kPanels>
TileInput<kRows, kPanels> InputOf(const BlockTile& tile, int term) {
  const PanelMatrix& weights = *tile.task->weights;
  const Activations& x = *tile.task->x;
  TileInput<kRows, kPanels> in;
  in.fetches = tile.fetches;
  in.fetch = {weights.scale_offset, kPanels * weights.panel_bytes};
  for (int p = 0; p < kPanels; ++p) {
    const uint8_t* panel =
        weights.data + (tile.panel + p) * weights.panel_bytes;
    in.data[p] = panel;
    in.scales[p] = panel + weights.scale_offset;
    in.minima[p] = panel + weights.min_offset;
  }
  for (int r = 0; r < kRows; ++r) {
    const size_t at = size_t(tile.row + r) * x.terms + term;
    in.quants[r] = x.quants + at * x.depth;
    in.side[r] = at * (x.depth / kScaleDepth);
  }
  return in;
}

// What a tile's sums go to: [rows][kGroupPanels][16].
constexpr int kGroupPanels = 4;
constexpr int kSumsStride = kGroupPanels * kPanelColumns;

// The first terms of the tile's rows.
template <class V, PanelTraits kFormat, int kRows, int kPanels>
void MultiplyBlockTile(const BlockTile& tile, float* sums) {
  typename V::F32 own[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) own[r][p] = V::Zero();
  }
  MultiplyBlocks<V, kFormat>(InputOf<kRows, kPanels>(tile, 0), *tile.task->x,
                             own);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      V::Store(sums + r * kSumsStride + p * kPanelColumns, own[r][p]);
    }
  }
}

// The tile of `rows` rows, at most V::kTileRows.
template <class V, PanelTraits kFormat, int kPanels, int kRows = V::kTileRows>
void MultiplyBlockRows(int rows, const BlockTile& tile, float* sums) {
  if (rows == kRows) {
    return MultiplyBlockTile<V, kFormat, kRows, kPanels>(tile, sums);
  }
  if constexpr (kRows > 1) {
    MultiplyBlockRows<V, kFormat, kPanels, kRows - 1>(rows, tile, sums);
  }
}

// Adds the second terms of `rows` rows. Row by row, since each has its own
// blocks, by many panels, since each input is loaded for all; the panels are in
// the cache.
template <class V, PanelTraits kFormat, int kPanels>
void AddRefined(int rows, BlockTile tile, float* sums) {
  const Activations& x = *tile.task->x;
  tile.fetches = false;
  auto in = InputOf<1, kPanels>(tile, 1);
  const uint16_t* chosen = x.chosen + size_t(tile.row) * x.refined;
  for (int r = 0; r < rows; ++r, sums += kSumsStride) {
    typename V::F32 own[1][kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) own[0][p] = V::Zero();
    for (int i = 0; i < x.refined; ++i) {
#pragma GCC unroll 2
      for (int half = 0; half < kScaleDepth / kFormat.group; ++half) {
        MultiplyGroup<V, kFormat>(in, x, *chosen, half, own);
      }
      ++chosen;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* at = sums + p * kPanelColumns;
      V::Store(at, V::Add(V::Load(at), own[0][p]));
    }
    in.quants[0] += 2 * size_t(x.depth);
    in.side[0] += 2 * size_t(x.depth / kScaleDepth);
  }
}

template <class V, int kPanels>
void FinishRows(int rows, const BlockTile& tile, const float* sums) {
  for (int r = 0; r < rows; ++r, sums += kSumsStride) {
    typename V::F32 own[1][kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      own[0][p] = V::Load(sums + p * kPanelColumns);
    }
    FinishTile<V, 1, kPanels>(*tile.task, tile.row + r, tile.panel, own);
  }
}

// Rows of the next tile when `rows` are left and tiles take `most`: as few
// tiles as there can be, and all alike, since small ones wait for their sums.
constexpr int EvenTile(int rows, int most) {
  const int tiles = (rows + most - 1) / most;
  return (rows + tiles - 1) / tiles;
}

// All rows of the task against kPanels panels from `panel` on. The first tile
// brings them into the caches.
template <class V, PanelTraits kFormat, int kPanels>
void MultiplyBlockPanels(const GemmTask& task, int panel) {
  constexpr int kTilePanels = kPanels < 2 ? 1 : 2;
  alignas(64) float sums[V::kTileRows * kSumsStride];
  BlockTile tile = {.task = &task, .row = task.first_row, .fetches = true};
  while (tile.row < task.last_row) {
    const int rows = EvenTile(task.last_row - tile.row, V::kTileRows);
    for (int p = 0; p < kPanels; p += kTilePanels) {
      tile.panel = panel + p;
      MultiplyBlockRows<V, kFormat, kTilePanels>(rows, tile,
                                                 sums + p * kPanelColumns);
    }
    tile.panel = panel;
    if (task.x->refined > 0) AddRefined<V, kFormat, kPanels>(rows, tile, sums);
    FinishRows<V, kPanels>(rows, tile, sums);
    tile.row += rows;
    tile.fetches = false;
  }
}

// Of the second-level cache, what the panels of a group may fill.
constexpr size_t kNearBytes = 256 << 10;

// The weights stream through registers, where nibbles become bytes: once from
// memory, and for each further tile of rows once more from the cache. To keep
// them as bytes meanwhile takes longer than it saves, however many rows there
// are.
template <class V, PanelTraits kFormat>
void GemmBlocks(const GemmTask& task) {
  const size_t group_bytes = kGroupPanels * task.weights->panel_bytes;
  int panel = task.first_panel;
  if (task.x->refined > 0 && group_bytes <= kNearBytes) {
    for (; panel + kGroupPanels <= task.last_panel; panel += kGroupPanels) {
      MultiplyBlockPanels<V, kFormat, kGroupPanels>(task, panel);
    }
  }
  for (; panel + 2 <= task.last_panel; panel += 2) {
    MultiplyBlockPanels<V, kFormat, 2>(task, panel);
  }
  if (panel < task.last_panel) {
    MultiplyBlockPanels<V, kFormat, 1>(task, panel);
  }
}

}  // namespace penstock
