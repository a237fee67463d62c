#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "kernels/host/expert_choice.h"
#include "kernels/oracle/dense.h"
#include "kernels/oracle/elementwise.h"
#include "kernels/oracle/oracle_forward.h"

namespace penstock {

void OracleForward::AddFeedForward(int layer) {
  const OracleLayer& weights = weights_.layers[layer];
  Normalize(weights.ffn_norm);
  if (spec_.layer_specs[layer].experts) {
    ExpertFeedForward(weights.experts);
  } else {
    DenseFeedForward(weights);
  }
  AddToResidual(weights.ffn_post_norm);
}

void OracleForward::DenseFeedForward(const OracleLayer& weights) {
  Multiply(norm_, rows_, weights.gate, gate_);
  Multiply(norm_, rows_, weights.up, up_);
  ForEach(rows_, [&](int row) {
    const size_t at = size_t{1} * row * spec_.ffn;
    for (size_t i = at; i < at + spec_.ffn; ++i) {
      up_[i] *= Activate(spec_.activation, gate_[i]);
    }
  });
  Multiply(up_, rows_, weights.down, projected_);
}

void OracleForward::ExpertFeedForward(const OracleExperts& weights) {
  const ExpertSpec& spec = *spec_.experts;
  Multiply(norm_, rows_, weights.router, router_);
  projected_.assign(size_t{1} * rows_ * spec_.hidden, 0.0f);
  ForEach(rows_, [&](int row) {
    const float* x = norm_.data() + size_t{1} * row * spec_.hidden;
    float* sum = projected_.data() + size_t{1} * row * spec_.hidden;
    std::vector<float> out;
    const auto logits = absl::MakeConstSpan(router_).subspan(
        size_t{1} * row * spec.count, spec.count);
    for (const ExpertShare& share :
         ChooseExperts(spec, logits, weights.choice_bias)) {
      RunExpert(x, weights.gate[share.expert], weights.up[share.expert],
                weights.down[share.expert], out);
      AddScaled(share.weight, out.data(), spec_.hidden, sum);
    }
    if (spec.shared_ffn > 0) {
      RunExpert(x, weights.shared_gate, weights.shared_up, weights.shared_down,
                out);
      AddScaled(1, out.data(), spec_.hidden, sum);
    }
  });
}

void OracleForward::RunExpert(const float* x, const Matrix& gate,
                              const Matrix& up, const Matrix& down,
                              std::vector<float>& out) const {
  std::vector<float> gated(gate.rows), inner(up.rows);
  MatrixProduct(x, 1, gate, {0, gate.rows}, gated.data());
  MatrixProduct(x, 1, up, {0, up.rows}, inner.data());
  for (size_t i = 0; i < inner.size(); ++i) {
    inner[i] *= Activate(spec_.activation, gated[i]);
  }
  out.resize(down.rows);
  MatrixProduct(inner.data(), 1, down, {0, down.rows}, out.data());
}

}  // namespace penstock
