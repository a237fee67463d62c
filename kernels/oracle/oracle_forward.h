#pragma once

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "common/model/model_spec.h"
#include "kernels/api/step_plan.h"
#include "kernels/host/thread_pool.h"
#include "kernels/oracle/oracle_attention.h"
#include "kernels/oracle/oracle_pages.h"
#include "kernels/oracle/oracle_weights.h"

namespace penstock {

// What a test may look at inside a step. Called on the step's thread.
struct OracleObserver {
  // The residual stream [rows, hidden] of the step: with 0 layers done, the
  // embeddings; with all of them done, the input of the output norm.
  std::function<void(int layers_done, absl::Span<const float> residual)>
      residual;
  // Logits [vocab] of a sampled row.
  std::function<void(int32_t row, absl::Span<const float> logits)> logits;
};

// The forward pass of a decoder-only transformer as `spec` describes it, in
// float, written to be read. Uses no state of earlier steps but the KV pages.
// One step at a time.
class OracleForward {
 public:
  struct Options {
    const ModelSpec* spec = nullptr;         // outlives this
    const OracleWeights* weights = nullptr;  // outlives this
    OraclePages pages;
    ThreadPool* pool = nullptr;  // outlives this
    OracleObserver observer;
  };
  explicit OracleForward(Options options);

  // Runs all layers over the plan's rows: writes their K and V to the pages
  // and leaves the final residual stream for Logits. Calls `layer_done` after
  // each layer. Precondition: CheckPlan.
  void Run(const StepPlan& plan,
           const std::function<void(int layers_done)>& layer_done);

  // Logits [rows.size(), vocab] of rows of the last Run.
  const std::vector<float>& Logits(absl::Span<const int32_t> rows);

 private:
  void Embed(const StepPlan& plan);

  // residual += attention(residual), norms included.
  void AddAttention(const StepPlan& plan, int layer);
  // From norm_ to q_, k_ and v_, not yet rotated.
  void ProjectHeads(const OracleLayer& weights);
  // The same for latent attention: one KV head of latent and rotated part.
  void ProjectLatent(const OracleLayer& weights);
  void RotateAndStore(int layer,
                      const std::vector<absl::Span<const BlockIndex>>& blocks,
                      const std::vector<int>& positions);
  // attended_ from the latent's space to each head's value.
  void RaiseValues(const OracleLatent& weights);

  // residual += feed_forward(residual), norms included.
  void AddFeedForward(int layer);
  void DenseFeedForward(const OracleLayer& weights);
  void ExpertFeedForward(const OracleExperts& weights);
  // out [w.down.rows] = down(activation(gate x) * up x) of one row.
  void RunExpert(const float* x, const Matrix& gate, const Matrix& up,
                 const Matrix& down, std::vector<float>& out) const;

  // out [rows, w.rows] = x [rows, w.cols] times w transposed, plus the bias
  // where there is one.
  void Multiply(const std::vector<float>& x, int rows, const Matrix& w,
                std::vector<float>& out);
  void AddBias(const std::vector<float>& bias, std::vector<float>& values);
  // Norms each run of `gain.size()` values in place; nothing without a gain.
  void NormalizeRuns(const std::vector<float>& gain,
                     std::vector<float>& values);
  // norm_ = the residual stream, normed where there is a gain.
  void Normalize(const std::vector<float>& gain);
  // residual += residual_scale * normed projected_.
  void AddToResidual(const std::vector<float>& post_norm);
  // Calls `body` for each index below `count`, on all threads.
  void ForEach(int count, const std::function<void(int)>& body);

  const ModelSpec& spec_;
  const OracleWeights& weights_;
  const OraclePages pages_;
  ThreadPool& pool_;
  const OracleObserver observer_;
  std::vector<Rope> ropes_;  // as ModelSpec::ropes

  int rows_ = 0;                 // of the current step
  std::vector<float> residual_;  // [rows, hidden]
  std::vector<float> norm_;      // [rows, hidden]
  std::vector<float> q_, k_, v_, attended_;
  std::vector<float> query_parts_, kv_parts_;  // of latent attention
  std::vector<float> gate_, up_, router_, projected_;
  std::vector<float> logits_;
};

}  // namespace penstock
