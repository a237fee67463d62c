#pragma once

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/step_cost.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

// What the threads of a pool can do together at most, measured.
struct MachineLimits {
  double read_bytes_per_s = 0;  // of memory, far more than caches hold
  // Multiplications and additions, of operands in the first-level cache.
  double int8_ops_per_s = 0;
  double bfloat16_ops_per_s = 0;
  double float_ops_per_s = 0;
};

// The best of a few passes, all with the table's instructions and those of
// BF16 with the machine's. Takes well under a second and 256 MiB.
// RESOURCE_EXHAUSTED: no memory.
absl::StatusOr<MachineLimits> MeasureMachineLimits(const KernelTable& kernels,
                                                   ThreadPool& pool);

// The larger of each.
MachineLimits Best(const MachineLimits& a, const MachineLimits& b);

// How long work takes at least.
struct LeastTime {
  double memory_s = 0;
  double compute_s = 0;

  double seconds() const;  // both go on at once
};

LeastTime LeastTimeOf(const StepCost& cost, const MachineLimits& limits);

}  // namespace penstock
