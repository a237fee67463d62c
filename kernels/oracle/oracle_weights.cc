#include "kernels/oracle/oracle_weights.h"

#include <cstdint>

namespace penstock {
namespace {

Matrix ToMatrix(const TensorView& tensor) {
  Matrix matrix;
  if (!tensor.present()) return matrix;
  matrix.rows = static_cast<int>(tensor.rows());
  matrix.cols = static_cast<int>(tensor.cols());
  matrix.values.resize(static_cast<size_t>(tensor.rows()) * tensor.cols());
  absl::Span<float> values = absl::MakeSpan(matrix.values);
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    DequantizeRow(tensor, row,
                  values.subspan(row * tensor.cols(), tensor.cols()));
  }
  return matrix;
}

std::vector<Matrix> ToMatrices(const std::vector<TensorView>& tensors) {
  std::vector<Matrix> matrices;
  for (const TensorView& tensor : tensors) matrices.push_back(ToMatrix(tensor));
  return matrices;
}

std::vector<float> ToVector(const TensorView& tensor) {
  return ToMatrix(tensor).values;
}

std::vector<float> ToGain(const TensorView& tensor, float offset) {
  std::vector<float> gain = ToVector(tensor);
  for (float& value : gain) value += offset;
  return gain;
}

OracleLatent LoadLatent(const LatentWeights& from, float norm_offset) {
  return {.query_down = ToMatrix(from.query_down),
          .query_up = ToMatrix(from.query_up),
          .query_norm = ToGain(from.query_norm, norm_offset),
          .kv_down = ToMatrix(from.kv_down),
          .kv_norm = ToGain(from.kv_norm, norm_offset),
          .query_latent = ToMatrices(from.query_latent),
          .value_up = ToMatrices(from.value_up)};
}

OracleExperts LoadExperts(const ExpertWeights& from) {
  return {.router = ToMatrix(from.router),
          .choice_bias = ToVector(from.choice_bias),
          .gate = ToMatrices(from.gate),
          .up = ToMatrices(from.up),
          .down = ToMatrices(from.down),
          .shared_gate = ToMatrix(from.shared_gate),
          .shared_up = ToMatrix(from.shared_up),
          .shared_down = ToMatrix(from.shared_down)};
}

OracleLayer LoadLayer(const LayerWeights& from, float norm_offset) {
  return {.attention_norm = ToGain(from.attention_norm, norm_offset),
          .q = ToMatrix(from.q),
          .k = ToMatrix(from.k),
          .v = ToMatrix(from.v),
          .o = ToMatrix(from.o),
          .q_bias = ToVector(from.q_bias),
          .k_bias = ToVector(from.k_bias),
          .v_bias = ToVector(from.v_bias),
          .o_bias = ToVector(from.o_bias),
          .q_norm = ToGain(from.q_norm, norm_offset),
          .k_norm = ToGain(from.k_norm, norm_offset),
          .attention_post_norm = ToGain(from.attention_post_norm, norm_offset),
          .ffn_norm = ToGain(from.ffn_norm, norm_offset),
          .gate = ToMatrix(from.gate),
          .up = ToMatrix(from.up),
          .down = ToMatrix(from.down),
          .ffn_post_norm = ToGain(from.ffn_post_norm, norm_offset),
          .latent = LoadLatent(from.latent, norm_offset),
          .experts = LoadExperts(from.experts)};
}

}  // namespace

OracleWeights LoadOracleWeights(const ModelFile& model) {
  const ModelWeights& from = model.weights();
  const float norm_offset = model.spec().norm_offset;
  OracleWeights weights;
  weights.token_embedding = ToMatrix(from.token_embedding);
  for (const LayerWeights& layer : from.layers) {
    weights.layers.push_back(LoadLayer(layer, norm_offset));
  }
  weights.output_norm = ToGain(from.output_norm, norm_offset);
  if (!model.spec().tied_head) weights.untied_output = ToMatrix(from.output);
  return weights;
}

}  // namespace penstock
