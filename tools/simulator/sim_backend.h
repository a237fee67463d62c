#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "kernels/api/arena.h"
#include "kernels/api/backend.h"

namespace penstock {

// Runs SimModel over a real arena in virtual time: a step ends after a cost
// that depends on its rows. Single-threaded.
class SimBackend : public Backend {
 public:
  struct Options {
    absl::Duration step_cost = absl::Milliseconds(2);
    absl::Duration row_cost = absl::Microseconds(20);
    int max_rows = 256;
    int max_sequences = 64;
  };
  // `on_done` runs when Poll has a result.
  SimBackend(Options options, Arena arena, Clock* clock, Timers* timers,
             std::function<void()> on_done);
  ~SimBackend() override { timers_->Cancel(step_timer_); }

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override;

  // Positions computed so far, over all steps.
  int64_t rows_computed() const { return rows_computed_; }
  // The next step fails with this status.
  void FailNextStep(absl::Status status) { next_status_ = std::move(status); }

 private:
  uint64_t* WordAt(BlockIndex block, int position);
  void CopyBlocks(const StepPlan& plan);
  uint64_t ReadState(const StepPlan& plan, int row);
  StepResult Run(const StepPlan& plan);

  Options options_;
  Arena arena_;
  Clock* clock_;
  Timers* timers_;
  std::function<void()> on_done_;
  BackendCaps caps_;
  KvLayout layout_;
  std::optional<StepResult> done_;
  bool in_flight_ = false;
  TimerId step_timer_ = 0;
  int64_t rows_computed_ = 0;
  absl::Status next_status_;
};

}  // namespace penstock
