#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/files/model_file.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

// How finely the inputs of matrices are quantised. Part of the numerics.
//
// An int8 term leaves an error in proportion to its block's scale, so that a
// few blocks of a row make most of the error. The blocks of the largest scales
// get a second term, and the matrices multiply those twice.
struct InputPrecision {
  // One block in so many; 1: all, 0: none.
  int refine_one_in = 3;
  // Matrices of BF16, which have no terms: whether they take their input in
  // BF16, with a fifth of the error of one int8 term, or in F32 at half the
  // speed.
  bool bfloats = true;

  // The least arithmetic: what other engines do.
  static InputPrecision Fast() { return {0}; }
  // As exact as F16 pages allow.
  static InputPrecision Exact() { return {1, false}; }

  // Of the blocks of a row.
  int RefinedOf(int blocks) const {
    return refine_one_in == 0 ? 0
                              : (blocks + refine_one_in - 1) / refine_one_in;
  }
};

// "fast", "default" or "exact". INVALID_ARGUMENT lists them.
absl::StatusOr<InputPrecision> ParsePrecision(absl::string_view name);

// Latent attention, packed; named as in LatentWeights. Columns of what rotates
// are ordered as CpuLayer's.
struct CpuLatent {
  PanelMatrix query_down;
  const float* query_norm = nullptr;  // [query_rank]
  PanelMatrix query_up;
  PanelMatrix kv_down;
  const float* kv_norm = nullptr;         // [latent]
  std::vector<PanelMatrix> query_latent;  // [heads]
  std::vector<PanelMatrix> value_up;      // [heads]
};

// A mixture of experts, packed. The router is multiplied in float.
struct CpuExperts {
  PanelMatrix router;
  std::vector<float> choice_bias;    // [experts] or empty
  std::vector<PanelMatrix> gate_up;  // [experts], panels alternate
  std::vector<PanelMatrix> down;     // [experts]
  PanelMatrix shared_gate_up, shared_down;
};

// Weights of one transformer block, packed. A matrix without panels and a null
// vector are absent.
struct CpuLayer {
  const float* attention_norm = nullptr;  // [hidden]
  // Columns of query and key are ordered within each head so that RoPE
  // rotates halves; their norms likewise.
  PanelMatrix query;                           // [q_width, hidden]
  PanelMatrix key;                             // [kv_width, hidden]
  PanelMatrix value;                           // [value_width, hidden]
  const float* query_norm = nullptr;           // as ModelSpec::qk_norm says
  const float* key_norm = nullptr;             // as ModelSpec::qk_norm says
  PanelMatrix output;                          // [hidden, attended_width]
  const float* attention_post_norm = nullptr;  // [hidden]
  const float* ffn_norm = nullptr;             // [hidden]
  PanelMatrix gate_up;                         // [2 * ffn, hidden], alternate
  PanelMatrix down;                            // [hidden, ffn]
  const float* ffn_post_norm = nullptr;        // [hidden]
  CpuLatent latent;
  CpuExperts experts;
};

// A model packed for the CPU kernels. Owns the packed weights or maps them;
// reads the embedding from the file. Immutable once made: safe from any thread.
class CpuModel {
 public:
  // Packs on all threads of the pool, unless `cache`, a folder, has the packed
  // weights; empty: none. Precondition: `file` outlives the model.
  // UNIMPLEMENTED, naming the field: a width that the kernels do not take.
  // RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<CpuModel>> Create(
      const ModelFile* file, const InputPrecision& precision, ThreadPool* pool,
      const std::string& cache = {});

  const ModelSpec& spec() const { return file_->spec(); }
  const InputPrecision& precision() const { return precision_; }
  const TensorView& embedding() const {
    return file_->weights().token_embedding;
  }
  const std::vector<CpuLayer>& layers() const { return layers_; }
  const float* output_norm() const { return output_norm_; }  // [hidden]
  const PanelMatrix& head() const { return head_; }          // [vocab, hidden]

 private:
  CpuModel(const ModelFile* file, const InputPrecision& precision)
      : file_(file), precision_(precision) {}

  const ModelFile* file_;
  const InputPrecision precision_;
  PackedWeights memory_;
  std::vector<CpuLayer> layers_;
  const float* output_norm_ = nullptr;
  PanelMatrix head_;
};

}  // namespace penstock
