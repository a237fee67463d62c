#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cost/step_times.h"
#include "common/env/clock.h"
#include "kernels/api/backend.h"

namespace penstock {

// Times a few steps of a backend before it serves: what short and long prompts
// and few and many answers cost here. Takes a twentieth of a second or so, and
// not much more where steps are slow: it stops after the one that exceeds that.
class Calibration {
 public:
  // To be called whenever the backend has something to poll, from any thread.
  void Ring();

  // Preconditions: no step is in flight, and nobody else submits or polls.
  // Overwrites blocks of the arena, of which there are `blocks`; steps that do
  // not fit are left out. What a step failed with.
  absl::StatusOr<std::vector<MeasuredStep>> Run(Backend& backend,
                                                const Clock& clock, int blocks);

 private:
  absl::StatusOr<absl::Duration> Time(Backend& backend, const Clock& clock,
                                      StepPlan plan);

  std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;  // guarded by mutex_
};

}  // namespace penstock
