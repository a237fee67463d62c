#include "router/core/work_estimate.h"

namespace penstock {

WorkEstimate::WorkEstimate() : cost_(*CostModel::Create({})) {}

absl::Duration WorkEstimate::Ahead(const WorkerInfo& worker,
                                   const WorkerLoad& load) const {
  absl::Duration ahead = cost_.Prefill(load.queued_tokens, 0);
  if (worker.roles.decode) {
    // Running requests are half done on average.
    ahead += (load.active_requests + load.queued_requests) *
             cost_.DecodeShare(expected_tokens_ / 2, 0);
  }
  return ahead;
}

}  // namespace penstock
