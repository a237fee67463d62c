#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// A tile is kRows rows of x by kPanels panels of weights, its sums in
// registers. "Rows" are physical here: a row of two terms counts twice.

// A block is 32 elements along the depth.

// The same values after UnpackPanel.
constexpr PanelTraits Unpacked(PanelTraits format) {
  format.packed = false;
  return format;
}

constexpr int BlockBytes(const PanelTraits& format) {
  return kPanelColumns * kScaleDepth / (format.packed ? 2 : 1);
}

// The panels of a tile and the rows it multiplies.
template <int kRows, int kPanels>
struct TileInput {
  const uint8_t* data[kPanels];    // blocks of the panel, maybe unpacked
  const uint8_t* scales[kPanels];  // the planes
  const uint8_t* minima[kPanels];  // where there are any
  const int8_t* quants[kRows];     // [depth]
  size_t side[kRows];  // of the row's first block in scales and sums of x
  size_t ahead;        // bytes to the panel that is read next; 0: no prefetch
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
#pragma GCC unroll 8
  for (int quad = 0; quad < kQuads; ++quad) {
    typename V::Bytes low[kPanels], high[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at =
          in.data[p] + block * BlockBytes(kFormat) + (first + quad) * 64;
      if (in.ahead != 0) V::Prefetch(at + in.ahead);
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
  const size_t ahead =
      in.ahead + group * size_t{kPanelColumns} * kFormat.element_bytes;
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    if (in.ahead != 0) V::Prefetch(in.scales[p] + ahead);
    const auto scale = LoadOfPlane<V, kFormat>(in.scales[p], group);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto scaled = V::Mul(V::ToFloat(dots[r][p]), scale);
      const auto x_scale = V::Set(x.scales[in.side[r] + block]);
      sums[r][p] = V::Fma(scaled, x_scale, sums[r][p]);
    }
    if constexpr (kFormat.has_minimum) {
      if (in.ahead != 0) V::Prefetch(in.minima[p] + ahead);
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

// Writes the rows of a tile; adds the two terms of a row first.
template <class V, int kRows, int kPanels>
[[gnu::always_inline]] inline void FinishTile(
    const GemmTask& task, int row, int panel,
    typename V::F32 (&sums)[kRows][kPanels]) {
  const int terms = task.weights->terms;
  if constexpr (kRows % 2 == 0) {
    if (terms == 2) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; r += 2) {
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          sums[r / 2][p] = V::Add(sums[r][p], sums[r + 1][p]);
        }
      }
    }
  }
  const float* bias = task.weights->bias;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (r >= kRows / terms) break;
    float* y = task.y + (row + r) * task.y_stride;
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
        V::Store(y + (panel + p) / 2 * kPanelColumns,
                 V::Mul(gate, sums[r][p + 1]));
      }
      continue;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* at = y + (panel + p) * kPanelColumns;
      V::Store(at, task.epilogue == Epilogue::kAdd
                       ? V::Fma(sums[r][p], V::Set(task.scale), V::Load(at))
                       : sums[r][p]);
    }
  }
}

// One tile of quantised weights. `data`: where panel `panel` begins, packed or
// unpacked, and `stride` bytes further each following one.
struct BlockTile {
  const GemmTask* task = nullptr;
  int row = 0;  // logical
  int panel = 0;
  const uint8_t* data = nullptr;
  size_t stride = 0;
  size_t ahead = 0;  // see TileInput
};

template <class V, PanelTraits kFormat, int kRows, int kPanels>
void MultiplyBlockTile(const BlockTile& tile) {
  const GemmTask& task = *tile.task;
  const PanelMatrix& weights = *task.weights;
  const Activations& x = *task.x;
  TileInput<kRows, kPanels> in;
  in.ahead = tile.ahead;
  for (int p = 0; p < kPanels; ++p) {
    const uint8_t* panel =
        weights.data + (tile.panel + p) * weights.panel_bytes;
    in.data[p] = tile.data + p * tile.stride;
    in.scales[p] = panel + weights.scale_offset;
    in.minima[p] = panel + weights.min_offset;
  }
  for (int r = 0; r < kRows; ++r) {
    const size_t at =
        size_t(tile.row + r / weights.terms) * x.terms + r % weights.terms;
    in.quants[r] = x.quants + at * x.depth;
    in.side[r] = at * (x.depth / kScaleDepth);
  }
  typename V::F32 sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::Zero();
  }
  MultiplyBlocks<V, kFormat>(in, x, sums);
  FinishTile<V, kRows, kPanels>(task, tile.row, tile.panel, sums);
}

// The tile of `rows` physical rows, at most V::kTileRows.
template <class V, PanelTraits kFormat, int kPanels, int kRows = V::kTileRows>
void MultiplyBlockRows(int rows, const BlockTile& tile) {
  if (rows == kRows) return MultiplyBlockTile<V, kFormat, kRows, kPanels>(tile);
  if constexpr (kRows > 1) {
    MultiplyBlockRows<V, kFormat, kPanels, kRows - 1>(rows, tile);
  }
}

// All rows of the task against kPanels panels.
template <class V, PanelTraits kFormat, int kPanels>
void MultiplyBlockPanels(BlockTile tile) {
  const int terms = tile.task->weights->terms;
  const int step = V::kTileRows / terms;
  for (tile.row = tile.task->first_row; tile.row < tile.task->last_row;
       tile.row += step) {
    const int left = tile.task->last_row - tile.row;
    MultiplyBlockRows<V, kFormat, kPanels>((left < step ? left : step) * terms,
                                           tile);
  }
}

// The nibbles of a panel as bytes: blocks of 256 bytes become 512.
template <class V>
void UnpackPanel(const uint8_t* from, int blocks, uint8_t* to) {
  for (int block = 0; block < blocks; ++block, from += 256, to += 512) {
    for (int quad = 0; quad < 4; ++quad) {
      const auto bytes = V::LoadBytes(from + quad * 64);
      V::StoreBytes(to + quad * 64, V::LowNibbles(bytes));
      V::StoreBytes(to + 256 + quad * 64, V::HighNibbles(bytes));
    }
  }
}

// Few rows: the weights stream through registers once, several panels at a
// time, and the next panels are fetched meanwhile.
template <class V, PanelTraits kFormat>
void StreamBlocks(const GemmTask& task) {
  const PanelMatrix& weights = *task.weights;
  constexpr int kWide = V::kStreamPanels;
  BlockTile tile = {.task = &task, .stride = weights.panel_bytes};
  int panel = task.first_panel;
  auto at = [&](int width) {
    tile.panel = panel;
    tile.data = weights.data + panel * weights.panel_bytes;
    panel += width;
  };
  const int rows = (task.last_row - task.first_row) * weights.terms;
  while (rows <= 2 && panel + kWide <= task.last_panel) {
    tile.ahead = kWide * weights.panel_bytes;
    at(kWide);
    MultiplyBlockPanels<V, kFormat, kWide>(tile);
  }
  while (panel + 2 <= task.last_panel) {
    tile.ahead = 2 * weights.panel_bytes;
    at(2);
    MultiplyBlockPanels<V, kFormat, 2>(tile);
  }
  if (panel < task.last_panel) {
    tile.ahead = 0;
    at(1);
    MultiplyBlockPanels<V, kFormat, 1>(tile);
  }
}

// Many rows: each panel is unpacked once into the first-level cache.
template <class V, PanelTraits kFormat>
void BlockBlocks(const GemmTask& task) {
  const PanelMatrix& weights = *task.weights;
  const int blocks = weights.depth / kScaleDepth;
  BlockTile tile = {.task = &task};
  for (int panel = task.first_panel; panel < task.last_panel; panel += 2) {
    const int count = task.last_panel - panel < 2 ? 1 : 2;
    tile.panel = panel;
    tile.data = weights.data + panel * weights.panel_bytes;
    tile.stride = weights.panel_bytes;
    if constexpr (kFormat.packed) {
      const size_t unpacked = size_t{512} * blocks;
      for (int p = 0; p < count; ++p) {
        UnpackPanel<V>(tile.data + p * tile.stride, blocks,
                       task.scratch + p * unpacked);
      }
      tile.data = task.scratch;
      tile.stride = unpacked;
    }
    if (count == 2) {
      MultiplyBlockPanels<V, Unpacked(kFormat), 2>(tile);
    } else {
      MultiplyBlockPanels<V, Unpacked(kFormat), 1>(tile);
    }
  }
}

template <class V, PanelTraits kFormat>
void GemmBlocks(const GemmTask& task) {
  const int rows = (task.last_row - task.first_row) * task.weights->terms;
  if (rows <= V::kTileRows) {
    StreamBlocks<V, kFormat>(task);
  } else {
    BlockBlocks<V, kFormat>(task);
  }
}

}  // namespace penstock
