#include "common/worker/host/calibration.h"

#include <utility>
#include <variant>

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
  for (int s = 0; s < steps.sequences; ++s) {
    const int blocks = BlocksFor(steps.behind + steps.rows);
    plan.sequences.push_back({.first_row = s * steps.rows,
                              .rows = steps.rows,
                              .first_block = s * blocks,
                              .blocks = blocks});
    for (int i = 0; i < blocks; ++i) plan.block_table.push_back(s * blocks + i);
    for (int i = 0; i < steps.rows; ++i) {
      plan.tokens.push_back(i);
      plan.positions.push_back(steps.behind + i);
    }
    SampleRow sample;
    sample.row = static_cast<int32_t>(plan.tokens.size()) - 1;
    sample.params.temperature = 0;
    plan.samples.push_back(std::move(sample));
  }
  return plan;
}

}  // namespace

void Calibration::Ring() {
  std::lock_guard<std::mutex> lock(mutex_);
  ringing_ = true;
  rung_.notify_one();
}

absl::StatusOr<absl::Duration> Calibration::Time(Backend& backend,
                                                 const Clock& clock,
                                                 StepPlan plan) {
  const Instant began = clock.Now();
  backend.Submit(std::move(plan));
  for (;;) {
    while (std::optional<BackendEvent> event = backend.Poll()) {
      const auto* result = std::get_if<StepResult>(&*event);
      if (result == nullptr) continue;
      RETURN_IF_ERROR(result->status);
      return clock.Now() - began;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    rung_.wait(lock, [this] { return ringing_; });
    ringing_ = false;
  }
}

absl::StatusOr<std::vector<MeasuredStep>> Calibration::Run(Backend& backend,
                                                           const Clock& clock,
                                                           int blocks) {
  std::vector<MeasuredStep> measured;
  const Instant began = clock.Now();
  for (const Steps& steps : kSteps) {
    if (clock.Now() - began > kEnough) break;
    if (BlocksOf(steps) > blocks || steps.rows > backend.caps().max_rows ||
        steps.sequences > backend.caps().max_sequences) {
      continue;
    }
    ASSIGN_OR_RETURN(const absl::Duration took,
                     Time(backend, clock, PlanOf(steps)));
    MeasuredStep step{.took = took};
    for (int s = 0; s < steps.sequences; ++s) {
      step.size.Add(steps.rows, steps.behind, 1);
    }
    if (&steps != kSteps) measured.push_back(step);
  }
  return measured;
}

}  // namespace penstock
