#include "kernels/oracle/oracle_weights.h"

#include <cstdint>

namespace penstock {
namespace {

Matrix ToMatrix(const TensorView& tensor) {
  Matrix matrix;
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

}  // namespace

OracleWeights LoadOracleWeights(const ModelFile& model) {
  const ModelWeights& from = model.weights();
  OracleWeights weights;
  weights.token_embedding = ToMatrix(from.token_embedding);
  for (const LayerWeights& layer : from.layers) {
    weights.layers.push_back(
        {.attention_norm = ToMatrix(layer.attention_norm).values,
         .q = ToMatrix(layer.q),
         .k = ToMatrix(layer.k),
         .v = ToMatrix(layer.v),
         .o = ToMatrix(layer.o),
         .ffn_norm = ToMatrix(layer.ffn_norm).values,
         .gate = ToMatrix(layer.gate),
         .up = ToMatrix(layer.up),
         .down = ToMatrix(layer.down)});
  }
  weights.output_norm = ToMatrix(from.output_norm).values;
  if (!model.spec().tied_head) weights.untied_output = ToMatrix(from.output);
  return weights;
}

}  // namespace penstock
