#include "kernels/cpu/cpu_path.h"

namespace penstock {
namespace {

bool Supported(CpuPath path) {
#if defined(__x86_64__)
  if (path == CpuPath::kAvx512Bf16) {
    return Supported(CpuPath::kAvx512) && __builtin_cpu_supports("avx512bf16");
  }
  if (path == CpuPath::kAvx512) {
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
  }
  if (path == CpuPath::kAvx2) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
  }
#endif
  return path == CpuPath::kScalar;
}

}  // namespace

absl::string_view CpuPathName(CpuPath path) {
  switch (path) {
    case CpuPath::kAuto:
      return "auto";
    case CpuPath::kScalar:
      return "scalar";
    case CpuPath::kAvx2:
      return "avx2";
    case CpuPath::kAvx512:
      return "avx512";
    case CpuPath::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

const KernelTable* FindKernels(CpuPath path) {
  if (path == CpuPath::kAuto) {
    for (CpuPath best :
         {CpuPath::kAvx512Bf16, CpuPath::kAvx512, CpuPath::kAvx2}) {
      if (Supported(best)) return FindKernels(best);
    }
    return &ScalarKernels();
  }
  if (!Supported(path)) return nullptr;
#if defined(__x86_64__)
  if (path == CpuPath::kAvx512Bf16) return &Avx512Bf16Kernels();
  if (path == CpuPath::kAvx512) return &Avx512Kernels();
  if (path == CpuPath::kAvx2) return &Avx2Kernels();
#endif
  return &ScalarKernels();
}

}  // namespace penstock
