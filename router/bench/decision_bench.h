#pragma once

#include "absl/time/time.h"
#include "common/env/clock.h"
#include "router/core/routing_policy.h"

namespace penstock {

struct DecisionBenchOptions {
  int workers = 10'000;
  int prompt_blocks = 256;
  absl::Duration time;  // of the measurement, about
};

// Seconds that the policy takes to place one request, hashing excluded, among
// so many workers that all serve both roles; each of some hundred prompts is
// cached in part by some of them.
double MeasureDecision(const DecisionBenchOptions& options,
                       const RoutingPolicy& policy, const Clock& clock);

}  // namespace penstock
