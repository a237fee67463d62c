#pragma once

#include <functional>
#include <optional>

#include "common/cost/cost_model.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "kernels/api/backend.h"

namespace penstock {

// A backend that only takes time: a step ends after what the cost model says of
// its rows. There are no pages; a token is a hash of seed and position, and
// never ends an answer. Single-threaded, in virtual time.
class TimedBackend : public Backend {
 public:
  struct Options {
    KvLayout layout;
    int max_rows = 0;
    int max_sequences = 0;
    int vocabulary = 0;
  };
  // `on_done` runs when Poll has a result. All outlive the backend.
  TimedBackend(const Options& options, const CostModel* cost,
               const Clock* clock, Timers* timers,
               std::function<void()> on_done);
  ~TimedBackend() override { timers_->Cancel(step_timer_); }

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return options_.layout; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override;

  int64_t steps() const { return steps_; }

 private:
  absl::Duration StepTime(const StepPlan& plan) const;
  StepResult Draw(const StepPlan& plan) const;

  Options options_;
  const CostModel* cost_;
  const Clock* clock_;
  Timers* timers_;
  std::function<void()> on_done_;
  BackendCaps caps_;
  std::optional<StepResult> result_;  // of the step in flight
  bool done_ = false;                 // its time is over
  TimerId step_timer_ = 0;
  int64_t steps_ = 0;
};

}  // namespace penstock
