#include "kernels/cpu/activation_kernel.h"
#include "kernels/cpu/float_gemm_kernel.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd_avx512.h"

namespace penstock {
namespace {

void GemmBf16(const GemmTask& task) {
  if (task.weights->format == PanelFormat::kBfloat16) {
    return GemmFloats<SimdAvx512Bf16, Bfloat16Panels<SimdAvx512Bf16>>(task);
  }
  Avx512Kernels().gemm(task);
}

}  // namespace

const KernelTable& Avx512Bf16Kernels() {
  static const KernelTable table = [] {
    KernelTable made = Avx512Kernels();
    made.name = SimdAvx512Bf16::kName;
    made.normalize = Normalize<SimdAvx512Bf16>;
    made.quantize = Quantize<SimdAvx512Bf16>;
    made.gemm = GemmBf16;
    return made;
  }();
  return table;
}

}  // namespace penstock
