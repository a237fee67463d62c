#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/kv_layout.h"
#include "kernels/api/arena.h"
#include "kernels/api/step_plan.h"
#include "kernels/cpu/cpu_model.h"
#include "kernels/cpu/huge_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/step_work.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

struct ForwardPassOptions {
  const CpuModel* model = nullptr;
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;
  Arena arena;
  KvLayout layout;
  int max_rows = 0;
};

// The forward pass of the Llama family over a StepPlan, on all threads of a
// pool. Owns the buffers between the matrices. One Run at a time.
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
  // A run of rows, panels or heads: [first, last).
  struct Part {
    int first = 0;
    int last = 0;
  };
  // Matrices that read the same input, each into its own columns.
  struct Product {
    const PanelMatrix* weights;
    float* y;
    size_t y_stride;
  };
  // What a thread needs for itself.
  struct ThreadScratch {
    uint8_t* unpacked = nullptr;
    float* scores = nullptr;      // [kMaxQueryTile][kAttentionSplit]
    float* attended = nullptr;    // [head_dim]
    AttentionState state, later;  // [queries of a tile]
    Activations normed;           // [kOwnRows][hidden]
    std::vector<const float*> query;
    std::vector<int> visible;
  };

  explicit ForwardPass(const ForwardPassOptions& options);
  void LayOut(Carver& carver);
  void LayOutThread(Carver& carver, ThreadScratch& scratch);
  Activations LayOutActivations(Carver& carver, size_t rows, int depth,
                                absl::Span<const PanelMatrix* const> uses);

  // What thread `thread` does of `count` things, in whole units.
  Part PartOf(int count, int unit, int thread) const;

  void RunThread(int thread);
  void CopyBlocks(int thread);
  void Embed(int thread);
  void RunLayer(int thread, int layer);
  void KeepSampledRows(int thread);
  const Activations& Normalize(int thread, Part rows, const float* gain);
  void Multiply(int thread, int rows, const Activations& x, Epilogue epilogue,
                absl::Span<const Product> products);
  void FeedForward(int thread, int rows, const Activations& x,
                   const PanelMatrix& gate_up);
  void RotateAndStoreRows(int thread, int layer);
  void RotateAndStore(int layer, int row, Part kv_heads);
  void AttendRows(int thread, int layer, const RowSet& set, bool store);
  void AttendTile(ThreadScratch& scratch, int layer, int kv_head,
                  const RowSet& set, const AttentionTile& tile);
  void SampleRows(int thread);

  uint8_t* Page(BlockIndex block, int layer) const;
  uint8_t* HeadPage(BlockIndex block, int layer, int kv_head) const;

  const ForwardPassOptions options_;
  const ModelSpec& spec_;
  const int group_;  // query heads of a KV head
  int tile_rows_ = 1;
  HugeBuffer memory_;

  // Written in one phase of a layer, read in a later one.
  float* hidden_ = nullptr;  // [max_rows][hidden], the residual stream
  float* query_ = nullptr;   // [max_rows][q_width]
  float* key_ = nullptr;     // [max_rows][kv_width]
  float* value_ = nullptr;   // [max_rows][kv_width]
  float* gated_ = nullptr;   // [max_rows][ffn]
  float* logits_ = nullptr;  // [kLogitRows][padded vocab]
  float* cosine_ = nullptr;  // [max_rows][rope_dim / 2]
  float* sine_ = nullptr;    // [max_rows][rope_dim / 2]
  Activations normed_;       // [max_rows][hidden]
  Activations attended_;     // [max_rows][q_width]
  Activations activated_;    // [max_rows][ffn]
  std::vector<ThreadScratch> scratch_;  // [threads]

  // The step that runs.
  const StepPlan* plan_ = nullptr;
  const OnLogits* on_logits_ = nullptr;
  StepWork work_;
  std::vector<std::atomic<int>> next_tile_;  // [layers]
};

}  // namespace penstock
