#include "router/core/work_estimate.h"

#include <algorithm>

namespace penstock {

WorkEstimate::WorkEstimate() : cost_(*CostModel::Create({})) {}

absl::Duration WorkEstimate::Ahead(const WorkerInfo& worker,
                                   const WorkerLoad& load) const {
  // Queued tokens are of prompts of equal length, as far as is known: attention
  // grows with the square of each.
  const int prompts =
      std::max(1, load.queued_requests +
                      (worker.roles.decode ? 0 : load.active_requests));
  absl::Duration ahead =
      prompts * cost_.Prefill(load.queued_tokens / prompts, 0);
  if (worker.roles.decode) {
    // Running requests are half done on average.
    ahead += (load.active_requests + load.queued_requests) *
             cost_.DecodeShare(expected_tokens_ / 2, 0);
  }
  return ahead;
}

absl::Duration WorkEstimate::Service(int prompt, int cached, int tokens) const {
  // The first token comes with the prompt.
  const int steps = std::max(0, tokens - 1);
  return cost_.Prefill(prompt - cached, cached) +
         steps * cost_.DecodeStep(1, prompt + steps / 2);
}

}  // namespace penstock
