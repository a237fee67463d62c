#include "kernels/cpu/feed_forward_block.h"

#include <vector>

namespace penstock {

FeedForwardBlock::FeedForwardBlock(PassState* state)
    : state_(*state), spec_(state->spec()) {
  if (spec_.experts.has_value()) {
    experts_ = std::make_unique<ExpertBlock>(state);
  }
}

void FeedForwardBlock::LayOut(Carver& carver) {
  if (experts_ != nullptr) experts_->LayOut(carver);
  std::vector<const PanelMatrix*> of_activated;
  for (const CpuLayer& layer : state_.model().layers()) {
    if (layer.down.panels > 0) of_activated.push_back(&layer.down);
  }
  if (of_activated.empty()) return;
  const size_t rows = state_.options().max_rows;
  gated_ = carver.Take<float>(rows * spec_.ffn);
  activated_ = state_.LayOutActivations(carver, rows, spec_.ffn, of_activated);
}

void FeedForwardBlock::Start() {
  if (experts_ != nullptr) experts_->Start();
}

void FeedForwardBlock::Run(int thread, int layer, int rows) {
  const CpuLayer& weights = state_.model().layers()[layer];
  const Activations& normed =
      state_.Normalize(thread, {0, rows}, weights.ffn_norm);
  if (spec_.layer_specs[layer].experts) {
    experts_->Run(thread, layer, rows, normed);
    return;
  }
  state_.MultiplyGated(
      thread, {0, rows},
      state_.PartOf(weights.gate_up.panels, kPanelUnit, thread), normed,
      weights.gate_up, gated_, activated_);
  state_.Barrier();
  state_.AddProduct(thread, rows, activated_, weights.down,
                    weights.ffn_post_norm);
}

}  // namespace penstock
