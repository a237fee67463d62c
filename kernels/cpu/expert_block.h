#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "kernels/cpu/pass_state.h"
#include "kernels/host/expert_choice.h"

namespace penstock {

// A mixture of experts from normalised rows to the residual stream. Rows are
// grouped by expert, so that each expert's weights are read once a step; a row
// adds its experts' answers in ascending order, whatever rows are beside it.
// Owns the buffers between the matrices. Used by all threads of one pass.
class ExpertBlock {
 public:
  // Precondition: the model's spec has `experts`.
  explicit ExpertBlock(PassState* state);
  void LayOut(Carver& carver);

  // Before the threads of a step start.
  void Start();
  void Run(int thread, int layer, int rows, const Activations& normed);

 private:
  // A row in an expert's group. Places of entries are rows of the buffers.
  struct Entry {
    int row = 0;
    ExpertShare share;
  };
  enum Phase { kGate, kDown, kPhases };

  void ChooseRows(int thread, int layer, int rows);
  void GroupRows(int rows);
  void GatherRows(int thread, const Activations& normed);
  // Calls `multiply(expert, its entries, panels)` for parts of all matrices of
  // the experts that have rows, as threads get to them.
  template <class Multiply>
  void ForParts(int layer, Phase phase, int panels, Multiply multiply);
  void CombineRow(int row) const;

  PassState& state_;
  const ModelSpec& spec_;
  const ExpertSpec& experts_;
  const int router_stride_;

  float* router_logits_ = nullptr;  // [max_rows][router_stride_]
  Activations gathered_;            // [entries][hidden]
  float* gated_ = nullptr;          // [entries][ffn]
  Activations activated_;           // [entries][ffn]
  float* answers_ = nullptr;        // [entries][hidden]
  float* shared_gated_ = nullptr;   // [max_rows][shared_ffn]
  Activations shared_activated_;    // [max_rows][shared_ffn]

  // Written in one phase of a layer, read in a later one.
  std::vector<std::vector<ExpertShare>> chosen_;  // [max_rows]
  std::vector<Entry> entries_;                    // by expert, then row
  std::vector<std::vector<int>> places_;  // [max_rows], of the row's entries
  std::vector<int> starts_;  // [experts + 1], of an expert's entries
  std::vector<int> busy_;    // experts that have entries
  // By layer: parts that were dealt out.
  std::vector<std::array<std::atomic<int>, kPhases>> next_part_;
};

}  // namespace penstock
