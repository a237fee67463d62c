#include "common/worker/host/calibration.h"

#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

constexpr absl::Duration kEnough = absl::Milliseconds(50);

// Alike sequences of a step.
struct Steps {
  int sequences = 1;
  int rows = 1;
  int behind = 0;
};
// The cheapest first. The first also brings weights into memory, so that it
// tells nothing; it saves the first request that time.
constexpr Steps kSteps[] = {
    {}, {}, {.sequences = 4}, {.rows = 32}, {.rows = 16, .behind = 512}};

int BlocksOf(const Steps& steps) {
  return steps.sequences * BlocksFor(steps.behind + steps.rows);
}

StepPlan PlanOf(const Steps& steps) {
  StepPlan plan;
  const int blocks = BlocksFor(steps.behind + steps.rows);
  for (int s = 0; s < steps.sequences; ++s) {
    AddProbeRows(plan, s * blocks, steps.behind, steps.rows);
    SampleLastRow(plan);
  }
  return plan;
}

}  // namespace

absl::StatusOr<std::vector<MeasuredStep>> Calibrate(Backend& backend,
                                                    StepDriver& driver,
                                                    const Clock& clock,
                                                    int blocks) {
  std::vector<MeasuredStep> measured;
  const Instant began = clock.Now();
  for (const Steps& steps : kSteps) {
    const Instant submitted = clock.Now();
    if (submitted - began > kEnough) break;
    if (BlocksOf(steps) > blocks || steps.rows > backend.caps().max_rows ||
        steps.sequences > backend.caps().max_sequences) {
      continue;
    }
    RETURN_IF_ERROR(driver.Run(backend, PlanOf(steps)));
    MeasuredStep step{.took = clock.Now() - submitted};
    for (int s = 0; s < steps.sequences; ++s) {
      step.size.Add(steps.rows, steps.behind, 1);
    }
    if (&steps != kSteps) measured.push_back(step);
  }
  return measured;
}

}  // namespace penstock
