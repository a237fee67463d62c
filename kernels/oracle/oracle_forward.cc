#include "kernels/oracle/oracle_forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/host/exp.h"
#include "kernels/oracle/dense.h"

namespace penstock {
namespace {

// out = x / rms(x) * weight, over n elements.
void RmsNorm(const float* x, const float* weight, float epsilon, int n,
             float* out) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double{x[i]} * x[i];
  const double scale = 1.0 / std::sqrt(sum / n + double{epsilon});
  for (int i = 0; i < n; ++i) {
    out[i] = static_cast<float>(x[i] * scale * weight[i]);
  }
}

// x * sigmoid(x).
float Silu(float x) {
  const double e = ExpNonPositive(-std::abs(double{x}));
  return static_cast<float>(x >= 0 ? x / (1 + e) : x * e / (1 + e));
}

absl::Span<const BlockIndex> BlocksOf(const StepPlan& plan,
                                      const SequenceRows& sequence) {
  return absl::MakeConstSpan(plan.block_table)
      .subspan(sequence.first_block, sequence.blocks);
}

}  // namespace

OracleForward::OracleForward(Options options)
    : spec_(*options.spec),
      weights_(*options.weights),
      pages_(options.pages),
      pool_(*options.pool),
      observer_(std::move(options.observer)),
      rope_(spec_.ropes[0], spec_.head_dim, spec_.context_length) {}

void OracleForward::Run(
    const StepPlan& plan,
    const std::function<void(int layers_done)>& layer_done) {
  rows_ = static_cast<int>(plan.tokens.size());
  for (const StepPlan::BlockCopy& copy : plan.copies) {
    pages_.Copy(copy.from, copy.to);
  }
  Embed(plan);
  if (observer_.residual) observer_.residual(0, residual_);
  for (int layer = 0; layer < spec_.layers; ++layer) {
    AddAttention(plan, layer);
    AddFeedForward(layer);
    if (observer_.residual) observer_.residual(layer + 1, residual_);
    layer_done(layer + 1);
  }
}

const std::vector<float>& OracleForward::Logits(
    absl::Span<const int32_t> rows) {
  const int count = static_cast<int>(rows.size());
  norm_.resize(size_t{1} * count * spec_.hidden);
  for (int i = 0; i < count; ++i) {
    RmsNorm(residual_.data() + size_t{1} * rows[i] * spec_.hidden,
            weights_.output_norm.data(), spec_.norm_epsilon, spec_.hidden,
            norm_.data() + size_t{1} * i * spec_.hidden);
  }
  Multiply(norm_, count, weights_.output(), logits_);
  if (observer_.logits) {
    for (int i = 0; i < count; ++i) {
      observer_.logits(rows[i],
                       absl::MakeConstSpan(logits_).subspan(
                           size_t{1} * i * spec_.vocab_size, spec_.vocab_size));
    }
  }
  return logits_;
}

void OracleForward::Embed(const StepPlan& plan) {
  residual_.resize(size_t{1} * rows_ * spec_.hidden);
  for (int row = 0; row < rows_; ++row) {
    const float* embedding = weights_.token_embedding.row(plan.tokens[row]);
    std::copy(embedding, embedding + spec_.hidden,
              residual_.begin() + size_t{1} * row * spec_.hidden);
  }
}

void OracleForward::AddAttention(const StepPlan& plan, int layer) {
  const OracleLayer& weights = weights_.layers[layer];
  Normalize(weights.attention_norm);
  Multiply(norm_, rows_, weights.q, q_);
  Multiply(norm_, rows_, weights.k, k_);
  Multiply(norm_, rows_, weights.v, v_);

  std::vector<absl::Span<const BlockIndex>> blocks(rows_);
  for (const SequenceRows& sequence : plan.sequences) {
    std::fill_n(blocks.begin() + sequence.first_row, sequence.rows,
                BlocksOf(plan, sequence));
  }
  const size_t head_bytes = spec_.head_dim * sizeof(float);
  ForEach(rows_, [&](int row) {
    const int position = plan.positions[row];
    float* k = k_.data() + size_t{1} * row * spec_.kv_width();
    const float* v = v_.data() + size_t{1} * row * spec_.kv_width();
    rope_.Rotate(position, spec_.heads,
                 q_.data() + size_t{1} * row * spec_.q_width());
    rope_.Rotate(position, spec_.kv_heads, k);
    for (int head = 0; head < spec_.kv_heads; ++head) {
      std::memcpy(pages_.K(layer, blocks[row], position, head),
                  k + head * spec_.head_dim, head_bytes);
      std::memcpy(pages_.V(layer, blocks[row], position, head),
                  v + head * spec_.head_dim, head_bytes);
    }
  });

  attended_.resize(size_t{1} * rows_ * spec_.q_width());
  ForEach(rows_, [&](int row) {
    const size_t at = size_t{1} * row * spec_.q_width();
    Attend(spec_, pages_, layer, blocks[row], plan.positions[row],
           q_.data() + at, attended_.data() + at);
  });
  Multiply(attended_, rows_, weights.o, projected_);
  AddToResidual(projected_);
}

void OracleForward::AddFeedForward(int layer) {
  const OracleLayer& weights = weights_.layers[layer];
  Normalize(weights.ffn_norm);
  Multiply(norm_, rows_, weights.gate, gate_);
  Multiply(norm_, rows_, weights.up, up_);
  ForEach(rows_, [&](int row) {
    const size_t at = size_t{1} * row * spec_.ffn;
    for (size_t i = at; i < at + spec_.ffn; ++i) up_[i] *= Silu(gate_[i]);
  });
  Multiply(up_, rows_, weights.down, projected_);
  AddToResidual(projected_);
}

void OracleForward::Multiply(const std::vector<float>& x, int rows,
                             const Matrix& w, std::vector<float>& out) {
  out.resize(size_t{1} * rows * w.rows);
  pool_.Run([&](int thread, int threads) {
    MatrixProduct(x.data(), rows, w, Share(w.rows, thread, threads),
                  out.data());
  });
}

void OracleForward::ForEach(int count, const std::function<void(int)>& body) {
  // Interleaved, because later rows of a chunk attend to more.
  pool_.Run([&](int thread, int threads) {
    for (int i = thread; i < count; i += threads) body(i);
  });
}

void OracleForward::Normalize(const std::vector<float>& weight) {
  norm_.resize(residual_.size());
  ForEach(rows_, [&](int row) {
    const size_t at = size_t{1} * row * spec_.hidden;
    RmsNorm(residual_.data() + at, weight.data(), spec_.norm_epsilon,
            spec_.hidden, norm_.data() + at);
  });
}

void OracleForward::AddToResidual(const std::vector<float>& values) {
  for (size_t i = 0; i < residual_.size(); ++i) residual_[i] += values[i];
}

}  // namespace penstock
