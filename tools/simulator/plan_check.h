#pragma once

#include "absl/status/status.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {

// Is what a text said a plan that can run? Each answers INVALID_ARGUMENT with
// the field, its value and what is allowed.

// What stands for the whole plan: all but its workers, requests and faults.
absl::Status CheckSettings(const SimPlan& plan);
// One worker, beside those that the plan has already.
absl::Status CheckWorker(const SimWorkerOptions& worker, const SimPlan& plan);
// One request: what an edge would let in.
absl::Status CheckRequest(const SimRequest& request);
// One fault of a plan whose workers are all there.
absl::Status CheckFault(const Fault& fault, const SimPlan& plan);

}  // namespace penstock
