#pragma once

#include <cstdint>

#include "common/model/kv_layout.h"
#include "kernels/api/step_plan.h"
#include "kernels/cpu/cpu_model.h"

namespace penstock {

// What a step has to move and compute whatever the kernels do: the least, to
// set measured time against what the machine can.
struct StepCost {
  uint64_t weight_bytes = 0;  // packed weights, read once
  uint64_t kv_bytes = 0;      // pages, read once by each sequence, and written
  // Multiplications and additions: of quantised matrices, twice in refined
  // blocks; of BF16 matrices on inputs in BF16; of the other matrices of
  // numbers, and attention.
  uint64_t int8_ops = 0;
  uint64_t bfloat16_ops = 0;
  uint64_t float_ops = 0;

  uint64_t bytes() const { return weight_bytes + kv_bytes; }
  uint64_t ops() const { return int8_ops + bfloat16_ops + float_ops; }

  // The operations of matrices in that format.
  uint64_t& OpsOf(PanelFormat format);
  StepCost& operator+=(const StepCost& other);
};

// Precondition: the plan passed CheckPlan.
StepCost CostOf(const CpuModel& model, const KvLayout& layout,
                const StepPlan& plan);

}  // namespace penstock
