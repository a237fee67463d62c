#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/cost/cost_model.h"
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
    // Instead of the two above: a step costs its prompt chunks, each on its
    // own, and one decode step of its other sequences.
    std::optional<CostModel> cost = std::nullopt;
    bool modelled = false;  // costs what a CostModel of defaults says
    int max_rows = 256;
    int max_sequences = 64;
    // A step is done when all ranks are, each of which may take up to this
    // share longer than the fastest; one that fails fails it on all.
    int ranks = 1;
    double rank_spread = 0;
  };
  // `on_done` runs when Poll has a result.
  SimBackend(Options options, Arena arena, const Clock* clock, Timers* timers,
             std::function<void()> on_done);
  ~SimBackend() override { timers_->Cancel(step_timer_); }

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override;

  // Of the step in flight, if there is one: it writes and reads them yet.
  absl::Span<const BlockIndex> blocks_in_flight() const {
    return plan_.block_table;
  }
  // Positions computed so far, over all steps.
  int64_t rows_computed() const { return rows_computed_; }
  // The next step fails with this status.
  void FailNextStep(absl::Status status) { next_status_ = std::move(status); }
  // Steps from now on take so many times as long.
  void set_slowness(double slowness) { slowness_ = slowness; }
  // Somebody else wrote into a block of the arena.
  void Touched(BlockIndex block) { folds_[block].known = false; }

 private:
  uint64_t* WordAt(BlockIndex block, int position);
  absl::Duration CostOf(const StepPlan& plan) const;
  // What `state` becomes by all words of a block.
  uint64_t FoldBlock(BlockIndex block, uint64_t state);
  void CopyBlocks(const StepPlan& plan);
  uint64_t ReadState(const StepPlan& plan, int row);
  StepResult Run(const StepPlan& plan);

  Options options_;
  Arena arena_;
  const Clock* clock_;
  Timers* timers_;
  std::function<void()> on_done_;
  BackendCaps caps_;
  KvLayout layout_;
  std::optional<StepResult> done_;
  bool in_flight_ = false;
  StepPlan plan_;  // until its end
  TimerId step_timer_ = 0;
  int64_t rows_computed_ = 0;
  absl::Status next_status_;
  double slowness_ = 1;
  // By block: what it last made of which state. Right as long as nobody wrote
  // there.
  struct KnownFold {
    bool known = false;
    uint64_t from = 0, to = 0;
  };
  std::vector<KnownFold> folds_;
};

}  // namespace penstock
