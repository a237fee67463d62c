#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/cost/cost_model.h"
#include "router/core/policy/candidates.h"
#include "router/core/policy/leg_ranking.h"
#include "router/core/policy/placement_cost.h"
#include "router/core/policy/policy_options.h"
#include "router/core/routing_policy.h"

namespace penstock {

// Every policy there is: finds the candidates, lets a ranking choose the decode
// worker, decides whether that prefills by itself, lets the ranking choose its
// partner otherwise, and predicts the load of both. Immutable.
class PlacementPolicy : public RoutingPolicy {
 public:
  PlacementPolicy(const PolicyOptions& options, const CostModel& cost);

  absl::StatusOr<Placement> Place(const RequestFacts& request,
                                  const ClusterView& view,
                                  Random& random) const override;

 private:
  PolicyOptions options_;
  PlacementCost cost_;
  std::unique_ptr<const LegRanking> ranking_;
};

}  // namespace penstock
