#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {

// A plan as lines of text, to be kept with the test that replays it:
//   seed 17
//   worker name prefill0 roles prefill transports tcp,shm
//   worker name decode0 roles decode transports tcp,shm blocks 40
//   request at 1.5ms prompt 100 max_tokens 20
//   fault kill at 1.5s for 200ms host prefill0
// What is at its default is left out; `#` begins a comment line.
std::string FormatPlan(const SimPlan& plan);

// INVALID_ARGUMENT names the line and what is wrong with it.
absl::StatusOr<SimPlan> ParsePlan(absl::string_view text);

}  // namespace penstock
