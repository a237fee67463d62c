#include "kernels/cpu/step_cost.h"

#include <set>

#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

constexpr uint64_t kHalfBytes = 2;

void AddMatrix(const PanelMatrix& matrix, uint64_t rows, StepCost& cost) {
  if (rows == 0) return;
  cost.weight_bytes += matrix.panels * matrix.panel_bytes;
  const uint64_t ops =
      2 * rows * matrix.terms * matrix.depth * matrix.panels * kPanelColumns;
  (TakesQuants(matrix.format) ? cost.int8_ops : cost.float_ops) += ops;
}

// One layer's keys, values and attention of one sequence.
void AddSequence(const ModelSpec& spec, uint64_t first_position, uint64_t rows,
                 StepCost& cost) {
  const uint64_t seen = first_position + rows;
  const uint64_t token_bytes = 2 * kHalfBytes * spec.kv_width();
  cost.kv_bytes += (seen + rows) * token_bytes;
  // Row i sees first_position + i + 1 positions.
  const uint64_t pairs = rows * first_position + rows * (rows + 1) / 2;
  cost.float_ops += 2 * 2 * pairs * spec.q_width();
}

}  // namespace

StepCost CostOf(const CpuModel& model, const StepPlan& plan) {
  StepCost cost;
  const uint64_t rows = plan.tokens.size();
  std::set<int32_t> sampled;
  for (const SampleRow& sample : plan.samples) sampled.insert(sample.row);
  for (const ScoreRow& score : plan.scores) sampled.insert(score.row);
  for (size_t i = 0; i < model.layers().size(); ++i) {
    const CpuLayer& layer = model.layers()[i];
    for (const PanelMatrix* matrix : {&layer.query, &layer.key, &layer.value}) {
      AddMatrix(*matrix, rows, cost);
    }
    const bool last = i + 1 == model.layers().size();
    for (const PanelMatrix* matrix :
         {&layer.output, &layer.gate_up, &layer.down}) {
      AddMatrix(*matrix, last ? sampled.size() : rows, cost);
    }
    for (const SequenceRows& sequence : plan.sequences) {
      AddSequence(model.spec(), plan.positions[sequence.first_row],
                  sequence.rows, cost);
    }
  }
  AddMatrix(model.head(), sampled.size(), cost);
  return cost;
}

}  // namespace penstock
