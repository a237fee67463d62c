#include "kernels/cpu/make_kernel_table.h"
#include "kernels/cpu/simd_avx2.h"

namespace penstock {

const KernelTable& Avx2Kernels() {
  static constexpr KernelTable kTable = MakeKernelTable<SimdAvx2>();
  return kTable;
}

}  // namespace penstock
