#include "tools/simulator/trace/timed_backend.h"

#include <utility>

#include "common/base/check.h"
#include "tools/simulator/sim_model.h"

namespace penstock {

TimedBackend::TimedBackend(const Options& options, const CostModel* cost,
                           const Clock* clock, Timers* timers,
                           std::function<void()> on_done)
    : options_(options),
      cost_(cost),
      clock_(clock),
      timers_(timers),
      on_done_(std::move(on_done)) {
  CHECK(options.vocabulary > 1);
  caps_.name = "timed";
  caps_.numerics = NumericsId(1);
  caps_.batch_invariant = true;
  caps_.max_rows = options.max_rows;
  caps_.max_sequences = options.max_sequences;
}

// Sequences with one row are decoded together; every other is a part of a
// prompt behind what it has already.
absl::Duration TimedBackend::StepTime(const StepPlan& plan) const {
  absl::Duration prefill;
  int decoding = 0;
  int64_t context = 0;
  for (const SequenceRows& part : plan.sequences) {
    const int before = plan.positions[part.first_row];
    if (part.rows > 1) {
      prefill += cost_->Prefill(part.rows, before);
    } else {
      ++decoding;
      context += before + 1;
    }
  }
  return prefill + cost_->DecodeStep(decoding, context);
}

StepResult TimedBackend::Draw(const StepPlan& plan) const {
  StepResult result;
  result.step = plan.step;
  result.sampled.resize(plan.samples.size());
  const auto choices = static_cast<uint64_t>(options_.vocabulary - 1);
  for (size_t i = 0; i < plan.samples.size(); ++i) {
    const SampleRow& row = plan.samples[i];
    const uint64_t bits = SimModel::Fold(
        SimModel::Fold(row.params.seed, row.position), row.sample);
    result.sampled[i].token = 1 + static_cast<TokenId>(bits % choices);
  }
  result.scored.resize(plan.scores.size());
  return result;
}

void TimedBackend::Submit(StepPlan plan) {
  CHECK(!result_.has_value());
  result_ = Draw(plan);
  ++steps_;
  step_timer_ = timers_->Schedule(clock_->Now() + StepTime(plan), [this] {
    done_ = true;
    on_done_();
  });
  result_->plan = std::move(plan);
}

std::optional<BackendEvent> TimedBackend::Poll() {
  if (!std::exchange(done_, false)) return std::nullopt;
  return BackendEvent(*std::exchange(result_, std::nullopt));
}

}  // namespace penstock
