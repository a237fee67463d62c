#include "kernels/cpu/make_kernel_table.h"
#include "kernels/cpu/simd_scalar.h"

namespace penstock {

const KernelTable& ScalarKernels() {
  static constexpr KernelTable kTable = MakeKernelTable<SimdScalar>();
  return kTable;
}

}  // namespace penstock
