#pragma once

#include "absl/strings/string_view.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

// Which instructions the kernels use. Results are the same bits on all of them.
enum class CpuPath {
  kAuto,        // the best of this machine
  kScalar,      // any machine; the reference
  kAvx2,        // AVX2, FMA, F16C
  kAvx512,      // AVX-512 F, BW, VL, VNNI
  kAvx512Bf16,  // and BF16
};

absl::string_view CpuPathName(CpuPath path);

// The kernels of a path; null where this machine lacks the instructions.
const KernelTable* FindKernels(CpuPath path);

}  // namespace penstock
