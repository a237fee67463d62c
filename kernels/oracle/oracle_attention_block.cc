#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "kernels/oracle/dense.h"
#include "kernels/oracle/elementwise.h"
#include "kernels/oracle/oracle_attention.h"
#include "kernels/oracle/oracle_forward.h"

namespace penstock {
namespace {

// The blocks of each row's sequence.
std::vector<absl::Span<const BlockIndex>> BlocksOfRows(const StepPlan& plan) {
  std::vector<absl::Span<const BlockIndex>> blocks(plan.tokens.size());
  for (const SequenceRows& sequence : plan.sequences) {
    std::fill_n(blocks.begin() + sequence.first_row, sequence.rows,
                absl::MakeConstSpan(plan.block_table)
                    .subspan(sequence.first_block, sequence.blocks));
  }
  return blocks;
}

}  // namespace

void OracleForward::AddAttention(const StepPlan& plan, int layer) {
  const OracleLayer& weights = weights_.layers[layer];
  Normalize(weights.attention_norm);
  if (spec_.latent.has_value()) {
    ProjectLatent(weights);
  } else {
    ProjectHeads(weights);
  }
  const auto blocks = BlocksOfRows(plan);
  RotateAndStore(layer, blocks, plan.positions);

  const size_t out_width = size_t{1} * spec_.heads * spec_.value_dim;
  attended_.resize(rows_ * out_width);
  ForEach(rows_, [&](int row) {
    Attend(spec_, pages_, layer, blocks[row], plan.positions[row],
           q_.data() + size_t{1} * row * spec_.q_width(),
           attended_.data() + row * out_width);
  });
  if (spec_.latent.has_value()) RaiseValues(weights.latent);
  Multiply(attended_, rows_, weights.o, projected_);
  AddBias(weights.o_bias, projected_);
  AddToResidual(weights.attention_post_norm);
}

void OracleForward::ProjectHeads(const OracleLayer& weights) {
  Multiply(norm_, rows_, weights.q, q_);
  Multiply(norm_, rows_, weights.k, k_);
  Multiply(norm_, rows_, weights.v, v_);
  AddBias(weights.q_bias, q_);
  AddBias(weights.k_bias, k_);
  AddBias(weights.v_bias, v_);
  // A gain is as long as what it norms: a head, or all of them.
  NormalizeRuns(weights.q_norm, q_);
  NormalizeRuns(weights.k_norm, k_);
}

void OracleForward::ProjectLatent(const OracleLayer& weights) {
  const LatentAttentionSpec& spec = *spec_.latent;
  const OracleLatent& latent = weights.latent;
  if (spec.query_rank > 0) {
    std::vector<float> low;
    Multiply(norm_, rows_, latent.query_down, low);
    NormalizeRuns(latent.query_norm, low);
    Multiply(low, rows_, latent.query_up, query_parts_);
  } else {
    Multiply(norm_, rows_, weights.q, query_parts_);
  }
  Multiply(norm_, rows_, latent.kv_down, kv_parts_);

  q_.resize(size_t{1} * rows_ * spec_.q_width());
  k_.resize(size_t{1} * rows_ * spec_.kv_width());
  v_.resize(size_t{1} * rows_ * spec_.value_width());
  ForEach(rows_, [&](int row) {
    float* k = k_.data() + size_t{1} * row * spec_.kv_width();
    std::copy_n(kv_parts_.data() + size_t{1} * row * spec_.kv_width(),
                spec_.kv_width(), k);
    RmsNorm(k, latent.kv_norm.data(), spec_.norm_epsilon, spec.latent, k);
    std::copy_n(k, spec.latent,
                v_.data() + size_t{1} * row * spec_.value_width());
    for (int head = 0; head < spec_.heads; ++head) {
      const float* from =
          query_parts_.data() +
          (size_t{1} * row * spec_.heads + head) * spec.query_dim();
      float* to =
          q_.data() + (size_t{1} * row * spec_.heads + head) * spec_.head_dim;
      MatrixProduct(from, 1, latent.query_latent[head], {0, spec.latent}, to);
      std::copy_n(from + spec.plain_dim, spec.rotated_dim, to + spec.latent);
    }
  });
}

void OracleForward::RotateAndStore(
    int layer, const std::vector<absl::Span<const BlockIndex>>& blocks,
    const std::vector<int>& positions) {
  const int rope = spec_.layer_specs[layer].rope;
  const int unrotated = spec_.latent.has_value() ? spec_.latent->latent : 0;
  ForEach(rows_, [&](int row) {
    const int position = positions[row];
    float* k = k_.data() + size_t{1} * row * spec_.kv_width();
    const float* v = v_.data() + size_t{1} * row * spec_.value_width();
    if (rope >= 0) {
      float* q = q_.data() + size_t{1} * row * spec_.q_width();
      ropes_[rope].Rotate(position, spec_.heads, q + unrotated);
      ropes_[rope].Rotate(position, spec_.kv_heads, k + unrotated);
    }
    for (int head = 0; head < spec_.kv_heads; ++head) {
      std::memcpy(pages_.K(layer, blocks[row], position, head),
                  k + head * spec_.head_dim, spec_.head_dim * sizeof(float));
      std::memcpy(pages_.V(layer, blocks[row], position, head),
                  v + head * spec_.value_dim, spec_.value_dim * sizeof(float));
    }
  });
}

void OracleForward::RaiseValues(const OracleLatent& weights) {
  const LatentAttentionSpec& spec = *spec_.latent;
  std::vector<float> raised(size_t{1} * rows_ * spec_.attended_width());
  ForEach(rows_ * spec_.heads, [&](int i) {
    const Matrix& value_up = weights.value_up[i % spec_.heads];
    MatrixProduct(attended_.data() + size_t{1} * i * spec.latent, 1, value_up,
                  {0, spec.value_dim},
                  raised.data() + size_t{1} * i * spec.value_dim);
  });
  attended_ = std::move(raised);
}

}  // namespace penstock
