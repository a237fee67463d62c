#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/cost/step_times.h"
#include "common/env/clock.h"
#include "kernels/api/backend.h"
#include "kernels/host/step_driver.h"

namespace penstock {

// Times a few steps of a backend before it serves: what short and long prompts
// and few and many answers cost here. Takes a twentieth of a second or so, and
// not much more where steps are slow: it stops after the one that exceeds that.
// Overwrites blocks of the arena, of which there are `blocks`; steps that do
// not fit are left out. What a step failed with. Precondition: as of
// StepDriver::Run.
absl::StatusOr<std::vector<MeasuredStep>> Calibrate(Backend& backend,
                                                    StepDriver& driver,
                                                    const Clock& clock,
                                                    int blocks);

}  // namespace penstock
