#include "kernels/cpu/make_kernel_table.h"
#include "kernels/cpu/simd_avx512.h"

namespace penstock {

const KernelTable& Avx512Kernels() {
  static constexpr KernelTable kTable = MakeKernelTable<SimdAvx512>();
  return kTable;
}

}  // namespace penstock
