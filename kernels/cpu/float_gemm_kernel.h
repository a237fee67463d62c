#pragma once

#include "kernels/cpu/gemm_kernel.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

// Weights that are stored as numbers: a column is one chain of fused
// multiply-adds along the depth, on F32 inputs.
template <class V>
struct HalfPanels {
  static constexpr int kBytes = 2;
  static typename V::F32 Load(const uint8_t* p) {
    return V::LoadHalf(reinterpret_cast<const uint16_t*>(p));
  }
};
template <class V>
struct Bfloat16Panels {
  static constexpr int kBytes = 2;
  static typename V::F32 Load(const uint8_t* p) {
    return V::LoadBfloat16(reinterpret_cast<const uint16_t*>(p));
  }
};
template <class V>
struct FloatPanels {
  static constexpr int kBytes = 4;
  static typename V::F32 Load(const uint8_t* p) {
    return V::Load(reinterpret_cast<const float*>(p));
  }
};

// `fetches`: the panels come from memory.
template <class V, class F, int kRows, int kPanels>
void MultiplyFloatTile(const GemmTask& task, int row, int panel, bool fetches) {
  const PanelMatrix& weights = *task.weights;
  const uint8_t* data = weights.data + panel * weights.panel_bytes;
  const float* x = task.x->values + size_t(row) * task.x->depth;
  const size_t depth = task.x->depth;
  typename V::F32 sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = V::Zero();
  }
  const PanelFetch fetch = {weights.panel_bytes, kPanels * weights.panel_bytes};
  constexpr size_t kStep = kPanelColumns * F::kBytes;
  for (size_t k = 0; k < depth; ++k) {
    const size_t ahead = fetch.Ahead<kRows>(k * kStep);
    typename V::F32 w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at = data + p * weights.panel_bytes;
      if (fetches) V::Prefetch(at + ahead);
      w[p] = F::Load(at + k * kStep);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto v = V::Set(x[r * depth + k]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = V::Fma(w[p], v, sums[r][p]);
      }
    }
  }
  FinishTile<V, kRows, kPanels>(task, row, panel, sums);
}

// The tile of `rows` rows, at most kRows.
template <class V, class F, int kPanels, int kRows>
void MultiplyFloatRows(int rows, const GemmTask& task, int row, int panel,
                       bool fetches) {
  if (rows == kRows) {
    return MultiplyFloatTile<V, F, kRows, kPanels>(task, row, panel, fetches);
  }
  if constexpr (kRows > 1) {
    MultiplyFloatRows<V, F, kPanels, kRows - 1>(rows, task, row, panel,
                                                fetches);
  }
}

// All rows of the task against kPanels panels.
template <class V, class F, int kPanels, int kRows = V::kTileRows>
void MultiplyFloatPanels(const GemmTask& task, int panel) {
  const int step = EvenTile(task.last_row - task.first_row, kRows);
  for (int row = task.first_row; row < task.last_row; row += step) {
    const int left = task.last_row - row;
    MultiplyFloatRows<V, F, kPanels, kRows>(left < step ? left : step, task,
                                            row, panel, row == task.first_row);
  }
}

template <class V, class F>
void GemmFloats(const GemmTask& task) {
  int panel = task.first_panel;
  for (; panel + 2 <= task.last_panel; panel += 2) {
    MultiplyFloatPanels<V, F, 2>(task, panel);
  }
  if (panel < task.last_panel) MultiplyFloatPanels<V, F, 1>(task, panel);
}

}  // namespace penstock
