#pragma once

#include <vector>

#include "common/model/files/model_file.h"
#include "kernels/oracle/dense.h"

namespace penstock {

// One transformer block in floats; shapes as in LayerWeights.
struct OracleLayer {
  std::vector<float> attention_norm;
  Matrix q, k, v, o;
  std::vector<float> ffn_norm;
  Matrix gate, up, down;
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
