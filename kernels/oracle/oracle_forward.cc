#include "kernels/oracle/oracle_forward.h"

#include <algorithm>
#include <utility>

#include "kernels/oracle/dense.h"
#include "kernels/oracle/elementwise.h"

namespace penstock {

OracleForward::OracleForward(Options options)
    : spec_(*options.spec),
      weights_(*options.weights),
      pages_(options.pages),
      pool_(*options.pool),
      observer_(std::move(options.observer)) {
  for (const RopeSpec& rope : spec_.ropes) {
    ropes_.emplace_back(rope, spec_.head_dim, spec_.context_length);
  }
}

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
  for (float& logit : logits_) {
    logit = SoftCap(spec_.logit_scale * logit, spec_.logit_cap);
  }
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
    std::transform(embedding, embedding + spec_.hidden,
                   residual_.begin() + size_t{1} * row * spec_.hidden,
                   [&](float x) { return spec_.embedding_scale * x; });
  }
}

void OracleForward::Multiply(const std::vector<float>& x, int rows,
                             const Matrix& w, std::vector<float>& out) {
  out.resize(size_t{1} * rows * w.rows);
  pool_.Run([&](int thread, int threads) {
    MatrixProduct(x.data(), rows, w, Share(w.rows, thread, threads),
                  out.data());
  });
}

void OracleForward::AddBias(const std::vector<float>& bias,
                            std::vector<float>& values) {
  if (bias.empty()) return;
  for (size_t i = 0; i < values.size(); ++i) values[i] += bias[i % bias.size()];
}

void OracleForward::NormalizeRuns(const std::vector<float>& gain,
                                  std::vector<float>& values) {
  if (gain.empty()) return;
  const int width = static_cast<int>(gain.size());
  ForEach(static_cast<int>(values.size() / width), [&](int run) {
    float* at = values.data() + size_t{1} * run * width;
    RmsNorm(at, gain.data(), spec_.norm_epsilon, width, at);
  });
}

void OracleForward::Normalize(const std::vector<float>& gain) {
  norm_ = residual_;
  NormalizeRuns(gain, norm_);
}

void OracleForward::AddToResidual(const std::vector<float>& post_norm) {
  NormalizeRuns(post_norm, projected_);
  for (size_t i = 0; i < residual_.size(); ++i) {
    residual_[i] += spec_.residual_scale * projected_[i];
  }
}

void OracleForward::ForEach(int count, const std::function<void(int)>& body) {
  // Interleaved, because later rows of a chunk attend to more.
  pool_.Run([&](int thread, int threads) {
    for (int i = thread; i < count; i += threads) body(i);
  });
}

}  // namespace penstock
