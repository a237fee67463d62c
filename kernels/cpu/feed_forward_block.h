#pragma once

#include <memory>

#include "kernels/cpu/expert_block.h"
#include "kernels/cpu/pass_state.h"

namespace penstock {

// The feed-forward of a layer, dense or a mixture of experts, from the residual
// stream back to it. Used by all threads of one pass.
class FeedForwardBlock {
 public:
  explicit FeedForwardBlock(PassState* state);
  void LayOut(Carver& carver);

  // Before the threads of a step start.
  void Start();
  // Rows [0, rows) of the residual stream.
  void Run(int thread, int layer, int rows);

 private:
  PassState& state_;
  const ModelSpec& spec_;
  std::unique_ptr<ExpertBlock> experts_;  // null: without
  float* gated_ = nullptr;                // [max_rows][ffn]
  Activations activated_;                 // [max_rows][ffn]
};

}  // namespace penstock
