#pragma once

#include <vector>

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

// A run of rows, panels or heads: [first, last).
struct Part {
  int first = 0;
  int last = 0;
  int count() const { return last - first; }
};

// Matrices that read the same input, each into its own columns.
struct Product {
  const PanelMatrix* weights;
  float* y;
  size_t y_stride;
  uint16_t* bfloats = nullptr;  // see GemmTask
};

// Rows whose activations a thread reads again and again per panel: they have
// to fit the second-level cache.
inline constexpr int kGemmRows = 512;
// Panels are dealt out in fours: what the widest tile takes.
inline constexpr int kPanelUnit = 4;
// In twos where nothing else asks for more: threads get more even shares.
inline constexpr int kLeastPanels = 2;

// Rows [row, ...) of `x` as rows from 0 on.
Activations RowsFrom(const Activations& x, int row);

// What the parts of a forward pass share: the model, the threads, the step that
// runs, the residual stream and its normalised rows. Methods that take a thread
// are called by every thread of the pool, each with its own number.
class PassState {
 public:
  explicit PassState(const ForwardPassOptions& options);
  void LayOut(Carver& carver);

  const ForwardPassOptions& options() const { return options_; }
  const CpuModel& model() const { return *options_.model; }
  const ModelSpec& spec() const { return spec_; }
  const KernelTable& kernels() const { return *options_.kernels; }
  void Barrier() const { options_.pool->Barrier(); }
  int threads() const { return options_.pool->threads(); }

  // The step.
  const StepPlan* plan = nullptr;
  StepWork work;

  // The residual stream, [max_rows][hidden].
  float* hidden(int row) const { return hidden_ + size_t(row) * spec_.hidden; }
  // What a block is about to add to it, where that is not added at once.
  float* projected(int row) const {
    return projected_ + size_t(row) * spec_.hidden;
  }

  // Room for `rows` rows in every form of input that the matrices take.
  Activations LayOutActivations(Carver& carver, size_t rows, int depth,
                                absl::Span<const PanelMatrix* const> uses);

  // What thread `thread` does of `count` things, in whole units.
  Part PartOf(int count, int unit, int thread) const;

  // Rows of the residual stream, normalised (as they are without a gain), as
  // rows from 0 on. Afterwards every thread may read them all.
  const Activations& Normalize(int thread, Part rows, const float* gain);

  // Rows that were quantised in parts, with their refined blocks chosen; what
  // the caller multiplies. Every thread may read the rows.
  const Activations& Choose(int thread, int rows, const Activations& x);

  // This thread's share of the columns of all products of x [rows].
  void Multiply(int thread, int rows, const Activations& x, Epilogue epilogue,
                absl::Span<const Product> products);
  // Rows and panels of one product, computed by this thread.
  void MultiplyPart(int thread, Part rows, Part panels, const Activations& x,
                    Epilogue epilogue, const Product& product);
  // Gate and up projections of rows and panels (a multiple of 4), and their
  // product quantised into `out`; `gated` is [rows][out.depth].
  void MultiplyGated(int thread, Part rows, Part panels, const Activations& x,
                     const PanelMatrix& gate_up, float* gated,
                     const Activations& out);

  // The residual stream += x * weights^T, normalised before where there is a
  // gain; x was quantised in parts. Ends with a barrier.
  void AddProduct(int thread, int rows, const Activations& x,
                  const PanelMatrix& weights, const float* post_norm);
  // The residual stream += projected rows of this thread, likewise. No barrier.
  void AddProjected(Part rows, const float* post_norm);

 private:
  // Rows that every thread normalises for itself.
  struct ThreadScratch {
    Activations normed;          // [kOwnRows][hidden]
    Activations ready;           // what Choose returned
    uint16_t* chosen = nullptr;  // [kOwnRows][its refined blocks]
  };

  void NormalizeRow(const float* x, const float* gain, const Activations& out,
                    int row) const;

  const ForwardPassOptions options_;
  const ModelSpec& spec_;
  float* hidden_ = nullptr;
  float* projected_ = nullptr;
  Activations normed_;                  // [max_rows][hidden]
  std::vector<ThreadScratch> scratch_;  // [threads]
};

}  // namespace penstock
