#include "kernels/cpu/step_cost.h"

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

void AddMatrix(const CpuModel& model, const PanelMatrix& matrix, uint64_t rows,
               StepCost& cost) {
  if (rows == 0) return;
  cost.weight_bytes += matrix.panels * matrix.panel_bytes;
  uint64_t depth = matrix.depth;
  if (TakesQuants(matrix.format)) {
    depth +=
        kScaleDepth * model.precision().RefinedOf(matrix.depth / kScaleDepth);
  }
  cost.OpsOf(matrix.format) += 2 * rows * depth * matrix.panels * kPanelColumns;
}

// Every matrix that all `rows` of a layer pass through up to attention, and
// behind it.
std::vector<const PanelMatrix*> Inputs(const CpuLayer& layer) {
  return {&layer.query,           &layer.key,
          &layer.value,           &layer.latent.query_down,
          &layer.latent.query_up, &layer.latent.kv_down};
}
std::vector<const PanelMatrix*> Outputs(const CpuLayer& layer) {
  return {&layer.output,
          &layer.gate_up,
          &layer.down,
          &layer.experts.router,
          &layer.experts.shared_gate_up,
          &layer.experts.shared_down};
}

void AddMatrices(const CpuModel& model,
                 const std::vector<const PanelMatrix*>& matrices, uint64_t rows,
                 StepCost& cost) {
  for (const PanelMatrix* matrix : matrices) {
    AddMatrix(model, *matrix, rows, cost);
  }
}

// The fewest experts that can serve the rows, each with all of them.
void AddExperts(const CpuModel& model, const CpuExperts& experts, uint64_t rows,
                StepCost& cost) {
  for (int i = 0; i < model.spec().experts->used; ++i) {
    AddMatrix(model, experts.gate_up[i], rows, cost);
    AddMatrix(model, experts.down[i], rows, cost);
  }
}

// One layer's keys, values and attention of one sequence.
void AddSequence(const ModelSpec& spec, const LayerSpec& layer,
                 uint64_t token_bytes, uint64_t first_position, uint64_t rows,
                 StepCost& cost) {
  uint64_t pairs = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t seen = first_position + row + 1;
    pairs += layer.window == 0 ? seen : std::min<uint64_t>(seen, layer.window);
  }
  const uint64_t all = first_position + rows;
  const uint64_t seen = layer.window == 0
                            ? all
                            : std::min<uint64_t>(all, layer.window + rows - 1);
  cost.kv_bytes += (seen + rows) * token_bytes;
  cost.float_ops += 2 * pairs * spec.heads * (spec.head_dim + spec.value_dim);
}

}  // namespace

uint64_t& StepCost::OpsOf(PanelFormat format) {
  if (TakesQuants(format)) return int8_ops;
  return format == PanelFormat::kBfloat16 ? bfloat16_ops : float_ops;
}

StepCost& StepCost::operator+=(const StepCost& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  int8_ops += other.int8_ops;
  bfloat16_ops += other.bfloat16_ops;
  float_ops += other.float_ops;
  return *this;
}

StepCost CostOf(const CpuModel& model, const KvLayout& layout,
                const StepPlan& plan) {
  StepCost cost;
  const ModelSpec& spec = model.spec();
  const uint64_t rows = plan.tokens.size();
  std::set<int32_t> sampled;
  for (const SampleRow& sample : plan.samples) sampled.insert(sample.row);
  for (const ScoreRow& score : plan.scores) sampled.insert(score.row);
  for (int i = 0; i < spec.layers; ++i) {
    const CpuLayer& layer = model.layers()[i];
    const uint64_t after = i + 1 == spec.layers ? sampled.size() : rows;
    AddMatrices(model, Inputs(layer), rows, cost);
    AddMatrices(model, Outputs(layer), after, cost);
    if (spec.layer_specs[i].experts) {
      AddExperts(model, layer.experts, after, cost);
    }
    for (const PanelMatrix& matrix : layer.latent.query_latent) {
      AddMatrix(model, matrix, rows, cost);
    }
    for (const PanelMatrix& matrix : layer.latent.value_up) {
      AddMatrix(model, matrix, after, cost);
    }
    for (const SequenceRows& sequence : plan.sequences) {
      AddSequence(spec, spec.layer_specs[i],
                  layout.layer_bytes() / kBlockTokens,
                  plan.positions[sequence.first_row], sequence.rows, cost);
    }
  }
  AddMatrix(model, model.head(), sampled.size(), cost);
  return cost;
}

}  // namespace penstock
