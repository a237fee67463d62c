#pragma once

#include "kernels/cpu/activation_kernel.h"
#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/attention_state_kernel.h"
#include "kernels/cpu/float_gemm_kernel.h"
#include "kernels/cpu/gemm_kernel.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/limit_kernel.h"

namespace penstock {

template <class V, PanelFormat kFormat>
void GemmQuants(const GemmTask& task) {
  GemmBlocks<V, kPanelTraits[static_cast<int>(kFormat)]>(task);
}

// By PanelFormat.
template <class V>
constexpr void (*kGemms[])(const GemmTask& task) = {
    GemmQuants<V, PanelFormat::kNibbles>,
    GemmQuants<V, PanelFormat::kNibblesMin>,
    GemmQuants<V, PanelFormat::kBytes>,
    GemmQuants<V, PanelFormat::kBytesMin>,
    GemmQuants<V, PanelFormat::kWideNibblesMin>,
    GemmQuants<V, PanelFormat::kWideBytes>,
    GemmQuants<V, PanelFormat::kWideBytesMin>,
    GemmQuants<V, PanelFormat::kFineNibbles>,
    GemmQuants<V, PanelFormat::kFineNibblesMin>,
    GemmQuants<V, PanelFormat::kFineBytes>,
    GemmFloats<V, HalfPanels<V>>,
    GemmFloats<V, Bfloat16Panels<V>>,
    GemmFloats<V, ExactBfloat16Panels<V>>,
    GemmFloats<V, FloatPanels<V>>,
};

template <class V>
void Gemm(const GemmTask& task) {
  kGemms<V>[static_cast<int>(task.weights->format)](task);
}

// By KvType.
template <class V>
constexpr void (*kWriters[])(const WriteKvTask& task) = {
    WriteKv<V, KvType::kF16>,  nullptr,
    WriteKv<V, KvType::kBf16>, WriteKv<V, KvType::kFp8>,
    WriteKv<V, KvType::kInt8>, WriteKv<V, KvType::kInt4>,
};

template <class V>
void WriteAnyKv(const WriteKvTask& task) {
  kWriters<V>[static_cast<int>(task.type)](task);
}

// By KvType.
template <class V>
constexpr void (*kAttends[])(const AttentionTask& task) = {
    Attend<V, KvType::kF16>,  nullptr,
    Attend<V, KvType::kBf16>, Attend<V, KvType::kFp8>,
    Attend<V, KvType::kInt8>, Attend<V, KvType::kInt4>,
};

template <class V>
void AttendAny(const AttentionTask& task) {
  kAttends<V>[static_cast<int>(task.type)](task);
}

// Every kernel for one instruction set; instantiated once, in the source that
// is compiled for it.
template <class V>
constexpr KernelTable MakeKernelTable() {
  return {
      .name = V::kName,
      .normalize = Normalize<V>,
      .quantize = Quantize<V>,
      .choose = Choose<V>,
      .normalize_in_place = NormalizeInPlace<V>,
      .add_scaled = AddScaled<V>,
      .soft_cap = SoftCapAll<V>,
      .gemm = Gemm<V>,
      .rotate_query = RotateQuery<V>,
      .write_kv = WriteAnyKv<V>,
      .attend = AttendAny<V>,
      .merge = MergeState<V>,
      .finish = FinishState<V>,
      .limits = {.read = ReadAll<V>,
                 .dot_bytes = DotBytesLoop<V>,
                 .multiply_floats = MultiplyFloatsLoop<V>},
  };
}

}  // namespace penstock
