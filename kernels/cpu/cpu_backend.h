#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/files/model_file.h"
#include "kernels/api/arena.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/cpu_model.h"
#include "kernels/cpu/cpu_path.h"
#include "kernels/cpu/forward_pass.h"
#include "kernels/cpu/step_cost.h"
#include "kernels/host/sampler.h"
#include "kernels/host/step_runner.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

struct CpuBackendOptions {
  const ModelFile* model = nullptr;  // outlives the backend
  KvType kv_type = KvType::kF16;     // not F32
  Arena arena;                       // whole blocks of KvLayout::For(kv_type)
  int threads = 1;
  CpuPath path = CpuPath::kAuto;
  bool spin = true;  // see ThreadPoolOptions
  int max_rows = 512;
  int max_sequences = 64;
  std::function<void()> wake;         // may be null
  ThreadPool* shared_pool = nullptr;  // instead of threads of its own
  InputPrecision precision;
  // Folder where packed weights lie between starts; empty: none.
  std::string weights_cache = {};
};

// Computes with int8 activations on the host's cores. Batch invariant, and the
// same bits on every path and any number of threads.
class CpuBackend : public Backend {
 public:
  // INVALID_ARGUMENT, naming the option; UNIMPLEMENTED: a model width that the
  // kernels do not take, or a path that this machine lacks;
  // RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<CpuBackend>> Create(
      CpuBackendOptions options);

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override;

  // What a step that passes CheckPlan has to move and compute at least.
  StepCost CostOf(const StepPlan& plan) const {
    return penstock::CostOf(*model_, layout_, plan);
  }

 private:
  explicit CpuBackend(CpuBackendOptions options);

  StepResult RunStep(const StepPlan& plan);

  const CpuBackendOptions options_;
  KvLayout layout_;
  BackendCaps caps_;
  std::unique_ptr<ThreadPool> own_pool_;
  ThreadPool* pool_ = nullptr;
  std::unique_ptr<CpuModel> model_;
  std::unique_ptr<ForwardPass> pass_;
  std::vector<Sampler> samplers_;       // [threads]
  std::unique_ptr<StepRunner> runner_;  // last: its thread uses the rest
};

}  // namespace penstock
