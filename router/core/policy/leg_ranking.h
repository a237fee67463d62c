#pragma once

#include <memory>

#include "common/env/random.h"
#include "common/peer/leg.h"
#include "router/core/cluster_view.h"
#include "router/core/policy/candidates.h"
#include "router/core/policy/pair_times.h"
#include "router/core/policy/policy_options.h"
#include "router/core/routing_policy.h"

namespace penstock {

// One leg of one request that needs a worker.
struct LegChoice {
  LegKind leg;
  const RequestFacts& request;
  const ClusterView& view;
  const Candidates& candidates;
  const PairTimes& times;
  const SlotSet& open;  // whom to choose from: never empty
};

// How a policy prefers one worker to another. Pure; stateless.
class LegRanking {
 public:
  virtual ~LegRanking() = default;
  // A member of `choice.open`. Decode is chosen first.
  virtual WorkerSlot Pick(const LegChoice& choice, Random& random) const = 0;
};

// The ranking of a policy.
std::unique_ptr<const LegRanking> MakeRanking(PolicyKind kind);

}  // namespace penstock
