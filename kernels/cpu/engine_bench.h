#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/api/backend.h"
#include "kernels/cpu/step_cost.h"
#include "kernels/host/step_driver.h"

namespace penstock {

struct EngineBenchOptions {
  std::vector<int> prefill = {512};   // prompt tokens, from an empty cache
  std::vector<int> batches = {1, 8};  // sequences that decode together
  int depth = 16;         // tokens each sequence holds before it decodes
  int decode_steps = 48;  // timed, one token a sequence each
  int repeat = 3;         // runs of each; the median is reported
};

// Speed of one kind of work.
struct EngineBenchRow {
  bool decode = false;
  int size = 0;        // prompt tokens, or sequences
  int depth = 0;       // at the start
  int steps = 0;       // of a run
  double seconds = 0;  // of a run, the median
  double tokens_per_second = 0;
  StepCost cost = {};  // of a run
};

// Times steps of a backend by driving it directly: no scheduler, no service.
// Blocks of the arena are overwritten.
class EngineBench {
 public:
  using CostOfPlan = std::function<StepCost(const StepPlan& plan)>;

  // To be given to the backend as its wake callback. The bench outlives it.
  std::function<void()> wake();

  // `cost` says what a plan costs; null: all rows cost nothing.
  // Preconditions: no step is in flight; `arena_blocks` are enough for the
  // largest run, and the backend's caps admit its batches (CHECKed; see
  // BlocksNeeded). Longer prompts than a step takes are cut into chunks.
  std::vector<EngineBenchRow> Run(Backend& backend, int64_t arena_blocks,
                                  const EngineBenchOptions& options,
                                  CostOfPlan cost = nullptr);

  static int64_t BlocksNeeded(const EngineBenchOptions& options);

 private:
  // Steps since it was made, and what they took.
  struct Tally {
    int steps = 0;
    double seconds = 0;
    StepCost cost;
  };

  void RunStep(Backend& backend, StepPlan plan, Tally& tally);
  // `tokens` more tokens of the sequence `index`, which holds `depth`.
  Tally Prefill(Backend& backend, int tokens, int depth, int index,
                int blocks_each);
  // `count` sequences of `depth` tokens each.
  void MakeHistories(Backend& backend, int count, int blocks_each, int depth);
  Tally Decode(Backend& backend, int batch, int blocks_each,
               const EngineBenchOptions& options);

  CostOfPlan cost_;
  StepDriver driver_;
};

}  // namespace penstock
