#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vector_math.h"

namespace penstock {

// A tile is kRows rows of x by kPanels panels of weights, its sums in
// registers. "Rows" are physical here: a row of two terms counts twice.

// How a format's panels are read. A block is 32 elements along the depth.
template <int kZeroPoint_, bool kHasMin_, bool kPacked_, bool kSmall_>
struct BlockFormat {
  static constexpr int kZeroPoint = kZeroPoint_;
  static constexpr bool kHasMin = kHasMin_;
  static constexpr bool kPacked = kPacked_;  // two nibbles a byte
  static constexpr bool kSmall = kSmall_;    // every value is under 128
  static constexpr int kBlockBytes = kPacked ? 256 : 512;
};
using Nibbles = BlockFormat<8, false, true, true>;
using NibblesMin = BlockFormat<0, true, true, true>;
using BytePanels = BlockFormat<128, false, false, false>;
// The same values after UnpackPanel.
template <class F>
using Unpacked = BlockFormat<F::kZeroPoint, F::kHasMin, false, F::kSmall>;

// The panels of a tile and the rows it multiplies.
template <int kRows, int kPanels>
struct TileInput {
  const uint8_t* data[kPanels];    // blocks of the panel, maybe unpacked
  const uint8_t* scales[kPanels];  // [blocks][16] F16
  const uint8_t* minima[kPanels];  // [blocks][16] F16, where there are any
  const int8_t* quants[kRows];     // [depth]
  size_t side[kRows];  // of the row's first block in scales and sums of x
  size_t ahead;        // bytes to the panel that is read next; 0: no prefetch
};

template <class V, class F, int kRows, int kPanels>
[[gnu::always_inline]] inline void DotBlock(
    const TileInput<kRows, kPanels>& in, int block,
    typename V::I32 (&dots)[kRows][kPanels]) {
  constexpr int kQuads = F::kPacked ? 4 : 8;
#pragma GCC unroll 8
  for (int quad = 0; quad < kQuads; ++quad) {
    typename V::Bytes low[kPanels], high[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at = in.data[p] + block * F::kBlockBytes + quad * 64;
      if (in.ahead != 0) V::Prefetch(at + in.ahead);
      const auto bytes = V::LoadBytes(at);
      low[p] = F::kPacked ? V::LowNibbles(bytes) : bytes;
      if constexpr (F::kPacked) high[p] = V::HighNibbles(bytes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const int8_t* x = in.quants[r] + block * kScaleDepth + 4 * quad;
      const auto x_low = V::LoadQuad(x);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        dots[r][p] = F::kSmall ? V::DotSmall(dots[r][p], low[p], x_low)
                               : V::Dot(dots[r][p], low[p], x_low);
      }
      if constexpr (F::kPacked) {
        const auto x_high = V::LoadQuad(x + 16);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          dots[r][p] = V::DotSmall(dots[r][p], high[p], x_high);
        }
      }
    }
  }
}

// sums += x * weights^T over all blocks, in order.
template <class V, class F, int kRows, int kPanels>
[[gnu::always_inline]] inline void MultiplyBlocks(
    const TileInput<kRows, kPanels>& in, const Activations& x,
    typename V::F32 (&sums)[kRows][kPanels]) {
  const int blocks = x.depth / kScaleDepth;
  for (int block = 0; block < blocks; ++block) {
    typename V::I32 dots[kRows][kPanels];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      // Taking the zero point off the sum makes signedness free.
      const auto start = V::SetInt(
          -F::kZeroPoint * (F::kZeroPoint ? x.sums[in.side[r] + block] : 0));
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) dots[r][p] = start;
    }
    DotBlock<V, F>(in, block, dots);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const size_t plane = size_t{32} * block;
      if (in.ahead != 0) V::Prefetch(in.scales[p] + plane + in.ahead);
      const auto scale =
          V::LoadHalf(reinterpret_cast<const uint16_t*>(in.scales[p] + plane));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const auto scaled = V::Mul(V::ToFloat(dots[r][p]), scale);
        const auto x_scale = V::Set(x.scales[in.side[r] + block]);
        sums[r][p] = V::Fma(scaled, x_scale, sums[r][p]);
      }
      if constexpr (F::kHasMin) {
        if (in.ahead != 0) V::Prefetch(in.minima[p] + plane + in.ahead);
        const auto min = V::LoadHalf(
            reinterpret_cast<const uint16_t*>(in.minima[p] + plane));
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const auto x_sum = V::Set(x.scaled_sums[in.side[r] + block]);
          sums[r][p] = V::Fma(min, x_sum, sums[r][p]);
        }
      }
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
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (r >= kRows / terms) break;
    float* y = task.y + (row + r) * task.y_stride;
    if (task.epilogue == Epilogue::kGatedSilu) {
#pragma GCC unroll 4
      for (int p = 0; p + 1 < kPanels; p += 2) {
        V::Store(y + (panel + p) / 2 * kPanelColumns,
                 V::Mul(Silu<V>(sums[r][p]), sums[r][p + 1]));
      }
      continue;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* at = y + (panel + p) * kPanelColumns;
      V::Store(at, task.epilogue == Epilogue::kAdd
                       ? V::Add(V::Load(at), sums[r][p])
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

template <class V, class F, int kRows, int kPanels>
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
  MultiplyBlocks<V, F>(in, x, sums);
  FinishTile<V, kRows, kPanels>(task, tile.row, tile.panel, sums);
}

// The tile of `rows` physical rows, at most V::kTileRows.
template <class V, class F, int kPanels, int kRows = V::kTileRows>
void MultiplyBlockRows(int rows, const BlockTile& tile) {
  if (rows == kRows) return MultiplyBlockTile<V, F, kRows, kPanels>(tile);
  if constexpr (kRows > 1) {
    MultiplyBlockRows<V, F, kPanels, kRows - 1>(rows, tile);
  }
}

// All rows of the task against kPanels panels.
template <class V, class F, int kPanels>
void MultiplyBlockPanels(BlockTile tile) {
  const int terms = tile.task->weights->terms;
  const int step = V::kTileRows / terms;
  for (tile.row = tile.task->first_row; tile.row < tile.task->last_row;
       tile.row += step) {
    const int left = tile.task->last_row - tile.row;
    MultiplyBlockRows<V, F, kPanels>((left < step ? left : step) * terms, tile);
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
template <class V, class F>
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
    MultiplyBlockPanels<V, F, kWide>(tile);
  }
  while (panel + 2 <= task.last_panel) {
    tile.ahead = 2 * weights.panel_bytes;
    at(2);
    MultiplyBlockPanels<V, F, 2>(tile);
  }
  if (panel < task.last_panel) {
    tile.ahead = 0;
    at(1);
    MultiplyBlockPanels<V, F, 1>(tile);
  }
}

// Many rows: each panel is unpacked once into the first-level cache.
template <class V, class F>
void BlockBlocks(const GemmTask& task) {
  const PanelMatrix& weights = *task.weights;
  const int blocks = weights.depth / kScaleDepth;
  BlockTile tile = {.task = &task};
  for (int panel = task.first_panel; panel < task.last_panel; panel += 2) {
    const int count = task.last_panel - panel < 2 ? 1 : 2;
    tile.panel = panel;
    tile.data = weights.data + panel * weights.panel_bytes;
    tile.stride = weights.panel_bytes;
    if constexpr (F::kPacked) {
      const size_t unpacked = size_t{512} * blocks;
      for (int p = 0; p < count; ++p) {
        UnpackPanel<V>(tile.data + p * tile.stride, blocks,
                       task.scratch + p * unpacked);
      }
      tile.data = task.scratch;
      tile.stride = unpacked;
    }
    if (count == 2) {
      MultiplyBlockPanels<V, Unpacked<F>, 2>(tile);
    } else {
      MultiplyBlockPanels<V, Unpacked<F>, 1>(tile);
    }
  }
}

template <class V, class F>
void GemmBlocks(const GemmTask& task) {
  const int rows = (task.last_row - task.first_row) * task.weights->terms;
  if (rows <= V::kTileRows) {
    StreamBlocks<V, F>(task);
  } else {
    BlockBlocks<V, F>(task);
  }
}

}  // namespace penstock
