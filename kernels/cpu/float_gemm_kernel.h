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

// More than two panels stream: the next ones are fetched meanwhile.
template <class V, class F, int kRows, int kPanels>
void MultiplyFloatTile(const GemmTask& task, int row, int panel) {
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
  for (size_t k = 0; k < depth; ++k) {
    typename V::F32 w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* at =
          data + p * weights.panel_bytes + k * kPanelColumns * F::kBytes;
      if constexpr (kPanels > 2) {
        V::Prefetch(at + kPanels * weights.panel_bytes);
      }
      w[p] = F::Load(at);
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
void MultiplyFloatRows(int rows, const GemmTask& task, int row, int panel) {
  if (rows == kRows) {
    return MultiplyFloatTile<V, F, kRows, kPanels>(task, row, panel);
  }
  if constexpr (kRows > 1) {
    MultiplyFloatRows<V, F, kPanels, kRows - 1>(rows, task, row, panel);
  }
}

// All rows of the task against kPanels panels.
template <class V, class F, int kPanels, int kRows = V::kTileRows>
void MultiplyFloatPanels(const GemmTask& task, int panel) {
  for (int row = task.first_row; row < task.last_row; row += kRows) {
    const int left = task.last_row - row;
    MultiplyFloatRows<V, F, kPanels, kRows>(left < kRows ? left : kRows, task,
                                            row, panel);
  }
}

template <class V, class F>
void GemmFloats(const GemmTask& task) {
  constexpr int kWide = V::kStreamPanels;
  int panel = task.first_panel;
  if (task.last_row - task.first_row <= 2) {
    for (; panel + kWide <= task.last_panel; panel += kWide) {
      MultiplyFloatPanels<V, F, kWide, 2>(task, panel);
    }
  }
  for (; panel + 2 <= task.last_panel; panel += 2) {
    MultiplyFloatPanels<V, F, 2>(task, panel);
  }
  if (panel < task.last_panel) MultiplyFloatPanels<V, F, 1>(task, panel);
}

}  // namespace penstock
