#pragma once

#include "router/core/routing_policy.h"

namespace penstock {

// Where a good policy places a request, three times in four anywhere else that
// can serve it: on busy workers, without a prefill leg or with one for a single
// token, back and forth between those that keep some of it. What a policy
// chooses must never matter to what comes out. Single-threaded; `usual`
// outlives it, and its errors are this one's.
class AnyPlacePolicy : public RoutingPolicy {
 public:
  explicit AnyPlacePolicy(const RoutingPolicy* usual) : usual_(usual) {}

  absl::StatusOr<Placement> Place(const RequestFacts& request,
                                  const ClusterView& view,
                                  Random& random) const override;

 private:
  const RoutingPolicy* usual_;
};

}  // namespace penstock
