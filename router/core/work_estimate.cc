#include "router/core/work_estimate.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr int kUsualPrompt = 512;  // tokens
constexpr double kWithin = 1.25;
constexpr double kSlowest = 4096;

double Settled(double before, absl::Duration assumed, double measured) {
  const double usual = absl::ToDoubleSeconds(assumed);
  if (usual <= 0 || !(measured > 0)) return before;
  const double pace = std::clamp(measured / usual, 1 / kSlowest, kSlowest);
  if (pace < before * kWithin && before < pace * kWithin) return before;
  return std::exp2(std::round(4 * std::log2(pace)) / 4);
}

}  // namespace

absl::Duration Paced(absl::Duration time, double pace) {
  return pace == 1 ? time : time * pace;
}

WorkEstimate::WorkEstimate() : cost_(*CostModel::Create({})) {}

absl::Duration WorkEstimate::Ahead(const WorkerInfo& worker,
                                   const WorkerLoad& load,
                                   const WorkerPace& pace) const {
  // Queued tokens are of prompts of equal length, as far as is known: attention
  // grows with the square of each.
  const int prompts =
      std::max(1, load.queued_requests +
                      (worker.roles.decode ? 0 : load.active_requests));
  absl::Duration ahead = Paced(
      prompts * cost_.Prefill(load.queued_tokens / prompts, 0), pace.prefill);
  if (worker.roles.decode) {
    // Running requests are half done on average.
    ahead += Paced((load.active_requests + load.queued_requests) *
                       cost_.DecodeShare(expected_tokens_ / 2, 0),
                   pace.decode);
  }
  return ahead;
}

WorkerPace WorkEstimate::PaceOf(const StepCosts& measured,
                                const WorkerPace& before) const {
  const auto pairs = static_cast<double>(AttentionPairs(kUsualPrompt, 0));
  const double prefill = measured.step + kUsualPrompt * measured.row +
                         pairs * measured.pair + measured.sample;
  // As CostModel::DecodeShare counts.
  const double steps = expected_tokens_;
  const double context = steps * kUsualPrompt + steps * (steps + 1) / 2;
  const double decode =
      steps * (measured.row + measured.sample) + context * measured.pair;
  return {Settled(before.prefill, cost_.Prefill(kUsualPrompt, 0), prefill),
          Settled(before.decode,
                  cost_.DecodeShare(expected_tokens_, kUsualPrompt), decode)};
}

absl::Duration WorkEstimate::Service(int prompt, int cached, int tokens) const {
  // The first token comes with the prompt.
  const int steps = std::max(0, tokens - 1);
  return cost_.Prefill(prompt - cached, cached) +
         steps * cost_.DecodeStep(1, prompt + steps / 2);
}

}  // namespace penstock
