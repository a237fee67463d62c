#pragma once

#include "kernels/cpu/activation_kernel.h"
#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/float_gemm_kernel.h"
#include "kernels/cpu/gemm_kernel.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

template <class V>
void Gemm(const GemmTask& task) {
  switch (task.weights->format) {
    case PanelFormat::kNibbles:
      return GemmBlocks<V, Nibbles>(task);
    case PanelFormat::kNibblesMin:
      return GemmBlocks<V, NibblesMin>(task);
    case PanelFormat::kBytes:
      return GemmBlocks<V, BytePanels>(task);
    case PanelFormat::kHalf:
      return GemmFloats<V, HalfPanels<V>>(task);
    case PanelFormat::kBfloat16:
      return GemmFloats<V, Bfloat16Panels<V>>(task);
    case PanelFormat::kFloat:
      return GemmFloats<V, FloatPanels<V>>(task);
  }
}

// Every kernel for one instruction set; instantiated once, in the source that
// is compiled for it.
template <class V>
constexpr KernelTable MakeKernelTable() {
  return {
      .name = V::kName,
      .normalize = Normalize<V>,
      .quantize = Quantize<V>,
      .gemm = Gemm<V>,
      .rotate_query = RotateQuery<V>,
      .write_kv = WriteKv<V>,
      .attend = Attend<V>,
      .merge = MergeState<V>,
      .finish = FinishState<V>,
  };
}

}  // namespace penstock
