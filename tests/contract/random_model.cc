#include "tests/contract/random_model.h"

#include <cmath>
#include <utility>

namespace penstock {

RandomModel::RandomModel(ModelSpec spec, uint64_t seed)
    : RandomModel(std::move(spec), seed, Extras()) {}

RandomModel::RandomModel(ModelSpec spec, uint64_t seed, const Extras& extras)
    : spec_(std::move(spec)), state_(2 * seed + 1) {
  weights_.token_embedding = Tensor(spec_.vocab_size, spec_.hidden, 1);
  for (const LayerSpec& options : spec_.layer_specs) {
    LayerWeights& layer = weights_.layers.emplace_back();
    if (extras.pre_norms) {
      layer.attention_norm = Gain(spec_.hidden);
      layer.ffn_norm = Gain(spec_.hidden);
    }
    if (extras.post_norms) {
      layer.attention_post_norm = Gain(spec_.hidden);
      layer.ffn_post_norm = Gain(spec_.hidden);
    }
    if (spec_.latent.has_value()) {
      AddLatent(layer);
    } else {
      AddHeads(layer, extras);
    }
    layer.o = Matrix(spec_.hidden, spec_.attended_width());
    if (extras.biases) layer.o_bias = Tensor(1, spec_.hidden, 0.5f);
    if (options.experts) {
      AddExperts(layer);
    } else {
      layer.gate = Matrix(spec_.ffn, spec_.hidden);
      layer.up = Matrix(spec_.ffn, spec_.hidden);
      layer.down = Matrix(spec_.hidden, spec_.ffn);
    }
  }
  weights_.output_norm = Gain(spec_.hidden);
  weights_.output = spec_.tied_head ? weights_.token_embedding
                                    : Matrix(spec_.vocab_size, spec_.hidden);
}

float RandomModel::Next() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return static_cast<float>(state_ >> 40) * 0x1p-23f - 1;
}

TensorView RandomModel::Tensor(int rows, int cols, float spread, float middle) {
  std::vector<float>& values = values_.emplace_back(size_t{1} * rows * cols);
  for (float& value : values) value = middle + spread * Next();
  TensorView view;
  view.name = "random";
  view.shape = {rows, cols};
  view.data = {reinterpret_cast<const uint8_t*>(values.data()),
               values.size() * sizeof(float)};
  return view;
}

TensorView RandomModel::Matrix(int rows, int cols) {
  return Tensor(rows, cols, 1.5f / std::sqrt(static_cast<float>(cols)));
}

std::vector<TensorView> RandomModel::Matrices(int count, int rows, int cols) {
  std::vector<TensorView> matrices;
  for (int i = 0; i < count; ++i) matrices.push_back(Matrix(rows, cols));
  return matrices;
}

TensorView RandomModel::Gain(int size) {
  return Tensor(1, size, 0.5f, 1 - spec_.norm_offset);
}

void RandomModel::AddHeads(LayerWeights& layer, const Extras& extras) {
  layer.q = Matrix(spec_.q_width(), spec_.hidden);
  layer.k = Matrix(spec_.kv_width(), spec_.hidden);
  layer.v = Matrix(spec_.value_width(), spec_.hidden);
  if (extras.biases) {
    layer.q_bias = Tensor(1, spec_.q_width(), 0.5f);
    layer.k_bias = Tensor(1, spec_.kv_width(), 0.5f);
    layer.v_bias = Tensor(1, spec_.value_width(), 0.5f);
  }
  if (spec_.qk_norm == QkNorm::kNone) return;
  const bool whole = spec_.qk_norm == QkNorm::kWhole;
  layer.q_norm = Gain(whole ? spec_.q_width() : spec_.head_dim);
  layer.k_norm = Gain(whole ? spec_.kv_width() : spec_.head_dim);
}

void RandomModel::AddLatent(LayerWeights& layer) {
  const LatentAttentionSpec& latent = *spec_.latent;
  const int query_width = spec_.heads * latent.query_dim();
  if (latent.query_rank == 0) {
    layer.q = Matrix(query_width, spec_.hidden);
  } else {
    layer.latent.query_down = Matrix(latent.query_rank, spec_.hidden);
    layer.latent.query_norm = Gain(latent.query_rank);
    layer.latent.query_up = Matrix(query_width, latent.query_rank);
  }
  layer.latent.kv_down =
      Matrix(latent.latent + latent.rotated_dim, spec_.hidden);
  layer.latent.kv_norm = Gain(latent.latent);
  layer.latent.query_latent =
      Matrices(spec_.heads, latent.latent, latent.plain_dim);
  layer.latent.value_up =
      Matrices(spec_.heads, latent.value_dim, latent.latent);
}

void RandomModel::AddExperts(LayerWeights& layer) {
  const ExpertSpec& experts = *spec_.experts;
  ExpertWeights& to = layer.experts;
  to.router = Matrix(experts.count, spec_.hidden);
  if (experts.gating == ExpertGating::kSigmoid) {
    to.choice_bias = Tensor(1, experts.count, 0.2f);
  }
  to.gate = Matrices(experts.count, experts.ffn, spec_.hidden);
  to.up = Matrices(experts.count, experts.ffn, spec_.hidden);
  to.down = Matrices(experts.count, spec_.hidden, experts.ffn);
  if (experts.shared_ffn == 0) return;
  to.shared_gate = Matrix(experts.shared_ffn, spec_.hidden);
  to.shared_up = Matrix(experts.shared_ffn, spec_.hidden);
  to.shared_down = Matrix(spec_.hidden, experts.shared_ffn);
}

}  // namespace penstock
