#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/status/status.h"
#include "kernels/api/backend.h"

namespace penstock {

// Adds the next `rows` of a sequence that has `behind` positions in the blocks
// from `first_block` on. Its tokens are any: work does not depend on them.
void AddProbeRows(StepPlan& plan, BlockIndex first_block, int behind, int rows);
// Draws greedily from the last row so far.
void SampleLastRow(StepPlan& plan);

// Runs steps of a backend one after the other, without an engine: to see what
// they take. One thread, but for Ring.
class StepDriver {
 public:
  // To be called whenever the backend has something to poll, from any thread.
  void Ring();

  // Submits a step and waits for its end. What the step failed with.
  // Preconditions: no step is in flight, and nobody else submits or polls.
  absl::Status Run(Backend& backend, StepPlan plan);

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  bool ringing_ = false;  // guarded by mutex_
};

}  // namespace penstock
