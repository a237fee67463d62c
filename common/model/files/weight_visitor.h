#pragma once

#include "common/model/files/model_file.h"

namespace penstock {

// What a tensor is for: matrices are multiplied and may be of any type.
enum class TensorRole { kMatrix, kVector, kRouter };

// Calls visit(tensor, role) for each tensor that is present, once each, in the
// order of the forward pass. `Weights`: ModelWeights, const or not.
template <typename Weights, typename Visit>
void VisitTensors(Weights& weights, bool tied_head, const Visit& visit) {
  auto one = [&visit](auto& tensor, TensorRole role) {
    if (tensor.present()) visit(tensor, role);
  };
  auto matrix = [&one](auto& tensor) { one(tensor, TensorRole::kMatrix); };
  auto vector = [&one](auto& tensor) { one(tensor, TensorRole::kVector); };
  auto matrices = [&matrix](auto& tensors) {
    for (auto& tensor : tensors) matrix(tensor);
  };
  matrix(weights.token_embedding);
  for (auto& layer : weights.layers) {
    for (auto* tensor :
         {&layer.attention_norm, &layer.q_bias, &layer.k_bias, &layer.v_bias,
          &layer.q_norm, &layer.k_norm, &layer.o_bias,
          &layer.attention_post_norm, &layer.ffn_norm, &layer.ffn_post_norm,
          &layer.latent.query_norm, &layer.latent.kv_norm,
          &layer.experts.choice_bias}) {
      vector(*tensor);
    }
    for (auto* tensor :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up,
          &layer.down, &layer.latent.query_down, &layer.latent.query_up,
          &layer.latent.kv_down, &layer.experts.shared_gate,
          &layer.experts.shared_up, &layer.experts.shared_down}) {
      matrix(*tensor);
    }
    matrices(layer.latent.query_latent);
    matrices(layer.latent.value_up);
    one(layer.experts.router, TensorRole::kRouter);
    matrices(layer.experts.gate);
    matrices(layer.experts.up);
    matrices(layer.experts.down);
  }
  vector(weights.output_norm);
  if (!tied_head) matrix(weights.output);
}

}  // namespace penstock
