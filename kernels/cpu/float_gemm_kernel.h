#pragma once

#include "kernels/cpu/gemm_kernel.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

// Weights that are stored as numbers. A step multiplies what `Load` takes:
// kElements elements along the depth of every column, in kBytes bytes. kLight:
// what is loaded needs no work before it is multiplied.

// A column is one chain of fused multiply-adds along the depth, on F32 inputs.
template <class V>
struct FloatPanels {
  static constexpr bool kLight = false;
  static constexpr int kElements = 1;
  static constexpr int kBytes = 4 * kPanelColumns;
  static const float* Inputs(const Activations& x) { return x.values; }
  static typename V::F32 Load(const uint8_t* p) {
    return V::Load(reinterpret_cast<const float*>(p));
  }
  static typename V::F32 LoadInput(const float* x) { return V::Set(*x); }
  static typename V::F32 Multiply(typename V::F32 sum, typename V::F32 w,
                                  typename V::F32 x) {
    return V::Fma(w, x, sum);
  }
};
template <class V>
struct HalfPanels : FloatPanels<V> {
  static constexpr int kBytes = 2 * kPanelColumns;
  static typename V::F32 Load(const uint8_t* p) {
    return V::LoadHalf(reinterpret_cast<const uint16_t*>(p));
  }
};
template <class V>
struct ExactBfloat16Panels : FloatPanels<V> {
  static constexpr int kBytes = 2 * kPanelColumns;
  static typename V::F32 Load(const uint8_t* p) {
    return V::LoadBfloat16(reinterpret_cast<const uint16_t*>(p));
  }
};

// Pairs, on inputs in BF16.
template <class V>
struct Bfloat16Panels {
  static constexpr bool kLight = V::kDotsBfloats;
  static constexpr int kElements = 2;
  static constexpr int kBytes = 4 * kPanelColumns;
  static const uint16_t* Inputs(const Activations& x) { return x.bfloats; }
  static typename V::Bytes Load(const uint8_t* p) { return V::LoadBytes(p); }
  static typename V::Quad LoadInput(const uint16_t* x) {
    return V::LoadQuad(reinterpret_cast<const int8_t*>(x));
  }
  static typename V::F32 Multiply(typename V::F32 sum, typename V::Bytes w,
                                  typename V::Quad x) {
    return V::DotBfloats(sum, w, x);
  }
};

// A tile, and its share of what it fetches for the tiles of the next panels.
struct FloatTile {
  const GemmTask* task = nullptr;
  int row = 0;
  int panel = 0;
  // From a panel on to what the first step fetches, and from step to step.
  size_t ahead = 0;
  size_t ahead_step = 0;
};

template <class V, class F, int kRows, int kPanels>
void MultiplyFloatTile(const FloatTile& tile) {
  const GemmTask& task = *tile.task;
  const PanelMatrix& weights = *task.weights;
  const uint8_t* data = weights.data + tile.panel * weights.panel_bytes;
  const size_t depth = task.x->depth;
  const auto* x = F::Inputs(*task.x) + tile.row * depth;
  typename V::F32 sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::Zero();
  }
  if (task.epilogue == Epilogue::kAdd) {
    for (int r = 0; r < kRows; ++r) {
      const float* y = task.y + (tile.row + r) * task.y_stride;
      for (int p = 0; p < kPanels; ++p) {
        V::Prefetch(y + (tile.panel + p) * kPanelColumns);
      }
    }
  }
  // Pointers to the first of each four rows, hidden from a compiler that would
  // keep one for every row, more than there are registers.
  constexpr int kFours = (kRows + 3) / 4;
  decltype(x) fours[kFours];
  for (int i = 0; i < kFours; ++i) fours[i] = x + 4 * i * depth;
  const uint8_t* const end = data + weights.panel_bytes;
  const uint8_t* ahead = data + tile.ahead;
  while (data != end) {
    decltype(F::Load(data)) w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      V::Prefetch(ahead + p * weights.panel_bytes);
      w[p] = F::Load(data + p * weights.panel_bytes);
    }
    data += F::kBytes;
    ahead += tile.ahead_step;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto v = F::LoadInput(fours[r / 4] + r % 4 * depth);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = F::Multiply(sums[r][p], w[p], v);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kFours; ++i) {
      fours[i] += F::kElements;
      asm("" : "+r"(fours[i]));
    }
  }
  FinishTile<V, kRows, kPanels>(task, tile.row, tile.panel, sums);
}

// The tile of `rows` rows, at most kRows.
template <class V, class F, int kPanels, int kRows>
void MultiplyFloatRows(int rows, const FloatTile& tile) {
  if (rows == kRows) return MultiplyFloatTile<V, F, kRows, kPanels>(tile);
  if constexpr (kRows > 1) {
    MultiplyFloatRows<V, F, kPanels, kRows - 1>(rows, tile);
  }
}

// All rows of the task against kPanels panels. Together the tiles fetch the
// next panels, evenly, so that memory is never waited for nor idle.
template <class V, class F, int kPanels, int kRows>
void MultiplyFloatPanels(const GemmTask& task, int panel) {
  const int rows = task.last_row - task.first_row;
  const int step = EvenTile(rows, kRows);
  const size_t tiles = (rows + step - 1) / step;
  const size_t panel_bytes = task.weights->panel_bytes;
  FloatTile tile = {.task = &task, .row = task.first_row, .panel = panel};
  tile.ahead = kPanels * panel_bytes;
  tile.ahead_step = (F::kBytes + tiles - 1) / tiles;
  for (; tile.row < task.last_row; tile.row += step) {
    const int left = task.last_row - tile.row;
    MultiplyFloatRows<V, F, kPanels, kRows>(left < step ? left : step, tile);
    tile.ahead += panel_bytes / tiles;
  }
}

// Whether tiles are four panels wide, with fewer rows: one or two rows against
// two panels would wait for their sums, and where many tiles read the same
// weights from the caches, wide ones load less. In between, the fewest tiles
// read weights that come from memory.
template <class F>
bool TilesAreWide(int rows) {
  return rows <= 2 || (F::kLight && rows > 24);
}

template <class V, class F>
void GemmFloats(const GemmTask& task) {
  int panel = task.first_panel;
  if (TilesAreWide<F>(task.last_row - task.first_row)) {
    for (; panel + 4 <= task.last_panel; panel += 4) {
      MultiplyFloatPanels<V, F, 4, V::kWideTileRows>(task, panel);
    }
  }
  for (; panel + 2 <= task.last_panel; panel += 2) {
    MultiplyFloatPanels<V, F, 2, V::kFloatTileRows>(task, panel);
  }
  if (panel < task.last_panel) {
    MultiplyFloatPanels<V, F, 1, V::kFloatTileRows>(task, panel);
  }
}

}  // namespace penstock
