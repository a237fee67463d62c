#pragma once

#include <vector>

#include "common/model/files/model_file.h"
#include "kernels/oracle/dense.h"

namespace penstock {

// A layer's tensors in floats, named and shaped as in LayerWeights. What the
// layer does without is empty. ModelSpec::norm_offset is in every gain.
struct OracleLatent {
  Matrix query_down, query_up;
  std::vector<float> query_norm;
  Matrix kv_down;
  std::vector<float> kv_norm;
  std::vector<Matrix> query_latent, value_up;  // [heads]
};

struct OracleExperts {
  Matrix router;
  std::vector<float> choice_bias;
  std::vector<Matrix> gate, up, down;  // [experts]
  Matrix shared_gate, shared_up, shared_down;
};

struct OracleLayer {
  std::vector<float> attention_norm;
  Matrix q, k, v, o;
  std::vector<float> q_bias, k_bias, v_bias, o_bias;
  std::vector<float> q_norm, k_norm;
  std::vector<float> attention_post_norm;
  std::vector<float> ffn_norm;
  Matrix gate, up, down;
  std::vector<float> ffn_post_norm;
  OracleLatent latent;
  OracleExperts experts;
};

// All weights of a model, dequantised exactly, once. Immutable.
struct OracleWeights {
  Matrix token_embedding;
  std::vector<OracleLayer> layers;
  std::vector<float> output_norm;
  Matrix untied_output;  // empty when the head is the embedding

  const Matrix& output() const {
    return untied_output.values.empty() ? token_embedding : untied_output;
  }
};

OracleWeights LoadOracleWeights(const ModelFile& model);

}  // namespace penstock
