#pragma once

#include <cstdint>

#include "kernels/api/backend.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// What a plan is checked against.
struct PlanBounds {
  int max_rows = 0;
  int max_sequences = 0;
  int vocab_size = 0;
  int64_t arena_blocks = 0;
};

// CHECKs what Backend::Submit demands of a plan: it is within the bounds, each
// row belongs to exactly one sequence, positions are consecutive within a
// sequence, and every block that a row writes or reads is in the arena.
void CheckPlan(const StepPlan& plan, const PlanBounds& bounds);

}  // namespace penstock
