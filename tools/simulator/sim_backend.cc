#include "tools/simulator/sim_backend.h"

#include <cstring>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "tools/simulator/sim_model.h"

namespace penstock {

SimBackend::SimBackend(Options options, Arena arena, Clock* clock,
                       Timers* timers, std::function<void()> on_done)
    : options_(options),
      arena_(arena),
      clock_(clock),
      timers_(timers),
      on_done_(std::move(on_done)),
      layout_(SimModel::Layout()) {
  caps_.name = "simulated";
  caps_.numerics = NumericsId(1);
  caps_.batch_invariant = true;
  caps_.max_rows = options.max_rows;
  caps_.max_sequences = options.max_sequences;
}

uint64_t* SimBackend::WordAt(BlockIndex block, int position) {
  Segment segment = layout_.Segments(block, {0, 1})[0];
  uint64_t at = segment.offset + (position % kBlockTokens) * sizeof(uint64_t);
  CHECK(at + sizeof(uint64_t) <= arena_.bytes.size());
  return reinterpret_cast<uint64_t*>(arena_.bytes.data() + at);
}

void SimBackend::CopyBlocks(const StepPlan& plan) {
  for (const StepPlan::BlockCopy& copy : plan.copies) {
    std::memcpy(WordAt(copy.to, 0), WordAt(copy.from, 0),
                layout_.block_bytes());
  }
}

// Reads every position from the pages, as attention does.
uint64_t SimBackend::ReadState(const StepPlan& plan, int row) {
  uint64_t state = 0;
  for (const SequenceRows& part : plan.sequences) {
    if (row < part.first_row || row >= part.first_row + part.rows) continue;
    for (int p = 0; p <= plan.positions[row]; ++p) {
      state = SimModel::Fold(
          state,
          *WordAt(plan.block_table[part.first_block + p / kBlockTokens], p));
    }
  }
  return state;
}

StepResult SimBackend::Run(const StepPlan& plan) {
  StepResult result;
  result.step = plan.step;
  result.status = std::exchange(next_status_, absl::OkStatus());
  CopyBlocks(plan);
  for (const SequenceRows& part : plan.sequences) {
    for (int i = 0; i < part.rows; ++i) {
      int row = part.first_row + i;
      int position = plan.positions[row];
      CHECK(position / kBlockTokens < part.blocks);
      *WordAt(plan.block_table[part.first_block + position / kBlockTokens],
              position) = SimModel::Word(plan.tokens[row], position);
      ++rows_computed_;
    }
  }
  std::map<int, uint64_t> states;
  auto state_at = [&](int row) {
    auto [it, added] = states.try_emplace(row);
    if (added) it->second = ReadState(plan, row);
    return it->second;
  };
  for (const SampleRow& sample : plan.samples) {
    const uint64_t state = state_at(sample.row);
    SampledToken drawn;
    drawn.token = SimModel::TokenOf(state, sample.params.seed, sample.position,
                                    sample.sample);
    if (sample.params.logprobs >= 0) {
      drawn.logprobs =
          SimModel::Compare(state, drawn.token, sample.params.logprobs);
    }
    result.sampled.push_back(drawn);
  }
  for (const ScoreRow& score : plan.scores) {
    result.scored.push_back(
        SimModel::Compare(state_at(score.row), score.token, score.best));
  }
  return result;
}

void SimBackend::Submit(StepPlan plan) {
  CHECK(!in_flight_);
  in_flight_ = true;
  absl::Duration cost =
      options_.step_cost +
      options_.row_cost * static_cast<double>(plan.tokens.size());
  step_timer_ =
      timers_->Schedule(clock_->Now() + cost, [this, plan = std::move(plan)] {
        done_ = Run(plan);
        on_done_();
      });
}

std::optional<BackendEvent> SimBackend::Poll() {
  if (!done_.has_value()) return std::nullopt;
  in_flight_ = false;
  return BackendEvent(*std::exchange(done_, std::nullopt));
}

}  // namespace penstock
