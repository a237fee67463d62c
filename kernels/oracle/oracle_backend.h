#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/model/files/model_file.h"
#include "kernels/api/arena.h"
#include "kernels/api/backend.h"
#include "kernels/host/step_runner.h"
#include "kernels/host/thread_pool.h"
#include "kernels/oracle/oracle_forward.h"
#include "kernels/oracle/oracle_weights.h"

namespace penstock {

// The reference backend: weights dequantised to float, float activations, F32
// pages, plain loops. What every other backend is compared with. Threads as
// Backend says.
class OracleBackend : public Backend {
 public:
  struct Options {
    const ModelFile* model = nullptr;  // read during Create only
    Arena arena;                       // outlives the backend
    std::function<void()>
        wake;  // any thread, after each new event; may be null
    int max_rows = 512;
    int max_sequences = 64;
    ThreadPoolOptions compute_threads;
    OracleObserver observer;  // for tests
  };

  // INVALID_ARGUMENT, naming the option: the arena is not aligned or holds no
  // block; a bound is not positive.
  static absl::StatusOr<std::unique_ptr<OracleBackend>> Create(Options options);

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override { return runner_.Poll(); }

 private:
  explicit OracleBackend(Options options);

  StepResult RunStep(const StepPlan& plan,
                     const StepRunner::Progress& progress);
  // Samples or scores `count` rows into `result`; `first` counts through
  // plan.samples, then plan.scores.
  absl::Status UseLogits(const StepPlan& plan, size_t first, size_t count,
                         StepResult& result);

  const ModelSpec spec_;
  const OracleWeights weights_;
  const KvLayout layout_;
  const int64_t arena_blocks_;
  BackendCaps caps_;
  ThreadPool pool_;
  OracleForward forward_;  // the runner's thread only
  StepRunner runner_;      // last: its thread uses all of the above
};

}  // namespace penstock
