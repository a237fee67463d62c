#include "tools/simulator/sim_backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "tools/simulator/sim_model.h"

namespace penstock {

SimBackend::SimBackend(Options options, Arena arena, const Clock* clock,
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
  if (options_.modelled) {
    absl::StatusOr<CostModel> usual = CostModel::Create({});
    CHECK(usual.ok());
    options_.cost = *usual;
  }
  folds_.resize(arena_.bytes.size() / layout_.block_bytes());
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
    Touched(copy.to);
  }
}

uint64_t SimBackend::FoldBlock(BlockIndex block, uint64_t state) {
  KnownFold& fold = folds_[block];
  if (!fold.known || fold.from != state) {
    fold = {true, state, state};
    const uint64_t* words = WordAt(block, 0);
    for (int i = 0; i < kBlockTokens; ++i) {
      fold.to = SimModel::Fold(fold.to, words[i]);
    }
  }
  return fold.to;
}

// Every position counts, as in attention.
uint64_t SimBackend::ReadState(const StepPlan& plan, int row) {
  const auto part = std::find_if(
      plan.sequences.begin(), plan.sequences.end(), [row](const auto& rows) {
        return row >= rows.first_row && row < rows.first_row + rows.rows;
      });
  CHECK(part != plan.sequences.end());
  const BlockIndex* table = plan.block_table.data() + part->first_block;
  const int length = plan.positions[row] + 1;
  const int full = length / kBlockTokens;
  uint64_t state = 0;
  for (int i = 0; i < full; ++i) state = FoldBlock(table[i], state);
  const int rest = length % kBlockTokens;
  if (rest == 0) return state;
  const uint64_t* words = WordAt(table[full], 0);
  for (int i = 0; i < rest; ++i) state = SimModel::Fold(state, words[i]);
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
      const BlockIndex block =
          plan.block_table[part.first_block + position / kBlockTokens];
      *WordAt(block, position) = SimModel::Word(plan.tokens[row], position);
      Touched(block);
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
    SampledToken drawn = SimModel::Draw(state, sample.params, sample.position,
                                        sample.sample, sample.history.get());
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

absl::Duration SimBackend::CostOf(const StepPlan& plan) const {
  absl::Duration cost;
  if (options_.cost.has_value()) {
    int decoding = 0;
    int64_t context = 0;
    for (const SequenceRows& part : plan.sequences) {
      const int behind = plan.positions[part.first_row];
      if (part.rows > 1) {
        cost += options_.cost->Prefill(part.rows, behind);
      } else {
        ++decoding;
        context += behind + 1;
      }
    }
    if (decoding > 0) cost += options_.cost->DecodeStep(decoding, context);
  } else {
    cost = options_.step_cost +
           options_.row_cost * static_cast<double>(plan.tokens.size());
  }
  double slowest = 0;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    // 2^-32 of a hash: in [0, 1).
    const uint64_t hash = SimModel::Word(rank, static_cast<int>(plan.step));
    slowest = std::max(slowest, static_cast<double>(hash >> 32) / (1ull << 32));
  }
  return cost * ((1 + options_.rank_spread * slowest) * slowness_);
}

void SimBackend::Submit(StepPlan plan) {
  CHECK(!in_flight_);
  in_flight_ = true;
  plan_ = std::move(plan);
  const Instant end = clock_->Now() + CostOf(plan_);
  step_timer_ = timers_->Schedule(end, [this] {
    StepPlan plan = std::exchange(plan_, {});
    done_ = Run(plan);
    done_->plan = std::move(plan);
    on_done_();
  });
}

std::optional<BackendEvent> SimBackend::Poll() {
  if (!done_.has_value()) return std::nullopt;
  in_flight_ = false;
  return BackendEvent(*std::exchange(done_, std::nullopt));
}

}  // namespace penstock
