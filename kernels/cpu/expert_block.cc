#include "kernels/cpu/expert_block.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"

namespace penstock {
namespace {

// Panels of an expert's matrix that a thread takes at a time.
constexpr int kPartPanels = 4 * kPanelUnit;

// Copies row `from_row` in every form that `to` has. Precondition: `from` has
// them too.
void CopyRow(const Activations& from, int from_row, const Activations& to,
             int to_row) {
  const Activations a = RowsFrom(from, from_row);
  const Activations b = RowsFrom(to, to_row);
  if (b.values != nullptr) std::copy_n(a.values, b.depth, b.values);
  if (b.bfloats != nullptr) std::copy_n(a.bfloats, b.depth, b.bfloats);
  // Terms lie one after the other.
  const size_t blocks = size_t(b.terms) * b.depth / kScaleDepth;
  std::copy_n(a.quants, blocks * kScaleDepth, b.quants);
  std::copy_n(a.scales, blocks, b.scales);
  std::copy_n(a.sums, blocks, b.sums);
  std::copy_n(a.scaled_sums, blocks, b.scaled_sums);
  if (b.half_sums != nullptr) {
    std::copy_n(a.half_sums, 2 * blocks, b.half_sums);
  }
  if (b.refined > 0) std::copy_n(a.chosen, b.refined, b.chosen);
}

}  // namespace

ExpertBlock::ExpertBlock(PassState* state)
    : state_(*state),
      spec_(state->spec()),
      experts_(*spec_.experts),
      router_stride_((experts_.count + kPanelColumns - 1) / kPanelColumns *
                     kPanelColumns),
      chosen_(state->options().max_rows),
      places_(state->options().max_rows),
      next_part_(spec_.layers) {}

void ExpertBlock::LayOut(Carver& carver) {
  const size_t rows = state_.options().max_rows;
  const size_t entries = rows * experts_.used;
  std::vector<const PanelMatrix*> of_gathered, of_activated, of_shared;
  for (const CpuLayer& layer : state_.model().layers()) {
    for (const PanelMatrix& matrix : layer.experts.gate_up) {
      of_gathered.push_back(&matrix);
    }
    for (const PanelMatrix& matrix : layer.experts.down) {
      of_activated.push_back(&matrix);
    }
    if (layer.experts.shared_down.panels > 0) {
      of_shared.push_back(&layer.experts.shared_down);
    }
  }
  router_logits_ = carver.Take<float>(rows * router_stride_);
  gathered_ =
      state_.LayOutActivations(carver, entries, spec_.hidden, of_gathered);
  gated_ = carver.Take<float>(entries * experts_.ffn);
  activated_ =
      state_.LayOutActivations(carver, entries, experts_.ffn, of_activated);
  answers_ = carver.Take<float>(entries * spec_.hidden);
  shared_gated_ = carver.Take<float>(rows * experts_.shared_ffn);
  shared_activated_ =
      state_.LayOutActivations(carver, rows, experts_.shared_ffn, of_shared);
}

void ExpertBlock::Start() {
  for (auto& phases : next_part_) {
    for (std::atomic<int>& next : phases) next = 0;
  }
}

void ExpertBlock::Run(int thread, int layer, int rows,
                      const Activations& normed) {
  const CpuLayer& weights = state_.model().layers()[layer];
  const CpuExperts& experts = weights.experts;
  const bool shared = experts.shared_down.panels > 0;
  const size_t hidden = spec_.hidden;
  state_.Multiply(
      thread, rows, normed, Epilogue::kStore,
      {{&experts.router, router_logits_, static_cast<size_t>(router_stride_)}});
  state_.Barrier();
  ChooseRows(thread, layer, rows);
  state_.Barrier();
  if (thread == 0) GroupRows(rows);
  state_.Barrier();
  GatherRows(thread, normed);
  if (shared) {
    state_.MultiplyGated(
        thread, {0, rows},
        state_.PartOf(experts.shared_gate_up.panels, kPanelUnit, thread),
        normed, experts.shared_gate_up, shared_gated_, shared_activated_);
  }
  state_.Barrier();
  if (shared) {
    state_.Multiply(thread, rows,
                    state_.Choose(thread, rows, shared_activated_),
                    Epilogue::kStore,
                    {{&experts.shared_down, state_.projected(0), hidden}});
  }
  ForParts(layer, kGate, experts.gate_up[0].panels,
           [&](int expert, Part entries, Part panels) {
             state_.MultiplyGated(thread, entries, panels, gathered_,
                                  experts.gate_up[expert], gated_, activated_);
           });
  state_.Barrier();
  const Activations& activated =
      state_.Choose(thread, static_cast<int>(entries_.size()), activated_);
  ForParts(layer, kDown, experts.down[0].panels,
           [&](int expert, Part entries, Part panels) {
             state_.MultiplyPart(thread, entries, panels, activated,
                                 Epilogue::kStore,
                                 {&experts.down[expert], answers_, hidden});
           });
  state_.Barrier();
  const Part share = state_.PartOf(rows, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    if (!shared) std::fill_n(state_.projected(row), hidden, 0.0f);
    CombineRow(row);
  }
  state_.AddProjected(share, weights.ffn_post_norm);
  state_.Barrier();
}

void ExpertBlock::ChooseRows(int thread, int layer, int rows) {
  const CpuExperts& experts = state_.model().layers()[layer].experts;
  const Part share = state_.PartOf(rows, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    const float* logits = router_logits_ + size_t(row) * router_stride_;
    chosen_[row] =
        ChooseExperts(experts_, absl::MakeConstSpan(logits, experts_.count),
                      experts.choice_bias);
  }
}

// A counting sort by expert; rows stay in order.
void ExpertBlock::GroupRows(int rows) {
  starts_.assign(experts_.count + 1, 0);
  for (int row = 0; row < rows; ++row) {
    for (const ExpertShare& share : chosen_[row]) ++starts_[share.expert + 1];
  }
  busy_.clear();
  for (int expert = 0; expert < experts_.count; ++expert) {
    if (starts_[expert + 1] > 0) busy_.push_back(expert);
    starts_[expert + 1] += starts_[expert];
  }
  entries_.resize(starts_.back());
  std::vector<int> next(starts_.begin(), starts_.end() - 1);
  for (int row = 0; row < rows; ++row) {
    places_[row].clear();
    for (const ExpertShare& share : chosen_[row]) {
      const int place = next[share.expert]++;
      entries_[place] = {row, share};
      places_[row].push_back(place);
    }
  }
}

void ExpertBlock::GatherRows(int thread, const Activations& normed) {
  const Part share =
      state_.PartOf(static_cast<int>(entries_.size()), 1, thread);
  for (int place = share.first; place < share.last; ++place) {
    CopyRow(normed, entries_[place].row, gathered_, place);
  }
}

template <class Multiply>
void ExpertBlock::ForParts(int layer, Phase phase, int panels,
                           Multiply multiply) {
  const int parts = (panels + kPartPanels - 1) / kPartPanels;
  const int count = static_cast<int>(busy_.size()) * parts;
  for (int i; (i = next_part_[layer][phase].fetch_add(1)) < count;) {
    const int expert = busy_[i / parts];
    const int first = i % parts * kPartPanels;
    multiply(expert, Part{starts_[expert], starts_[expert + 1]},
             Part{first, std::min(panels, first + kPartPanels)});
  }
}

void ExpertBlock::CombineRow(int row) const {
  for (int place : places_[row]) {
    state_.kernels().add_scaled(answers_ + size_t(place) * spec_.hidden,
                                entries_[place].share.weight, spec_.hidden,
                                state_.projected(row));
  }
}

}  // namespace penstock
