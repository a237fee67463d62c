#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/api/step_plan.h"
#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/feed_forward_block.h"
#include "kernels/cpu/huge_buffer.h"
#include "kernels/cpu/pass_state.h"

namespace penstock {

// The forward pass of a model as its spec describes it, over a StepPlan, on all
// threads of a pool. Owns the buffers between the matrices. One Run at a time.
//
// How a step is cut into rows, panels and splits, and on how many threads it
// runs, changes no bit of a row's logits.
class ForwardPass {
 public:
  // Logits of one row that is sampled or scored, given to any thread of the
  // pool; `use` is an index into StepPlan::samples, then into ::scores.
  using OnLogits =
      std::function<void(int thread, int use, absl::Span<const float> logits)>;

  // Precondition: what the options point to outlives the pass.
  // RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<ForwardPass>> Create(
      const ForwardPassOptions& options);

  // Precondition: the plan passed CheckPlan.
  void Run(const StepPlan& plan, const OnLogits& on_logits);

 private:
  explicit ForwardPass(const ForwardPassOptions& options);
  void LayOut(Carver& carver);

  void RunThread(int thread);
  void CopyBlocks(int thread);
  void Embed(int thread);
  void SampleRows(int thread);

  PassState state_;
  AttentionBlock attention_;
  FeedForwardBlock feed_forward_;
  HugeBuffer memory_;
  float* logits_ = nullptr;              // [kLogitRows][padded vocab]
  const OnLogits* on_logits_ = nullptr;  // of the step that runs
};

}  // namespace penstock
