#pragma once

#include "common/cost/cost_model.h"
#include "router/core/cluster_view.h"
#include "router/core/policy/candidates.h"
#include "router/core/policy/policy_options.h"
#include "router/core/routing_policy.h"

namespace penstock {

// What serving a request is predicted to take, in seconds, and to put on its
// workers. Pure; a value type.
class PlacementCost {
 public:
  PlacementCost(const PolicyOptions& options, const CostModel& cost)
      : expected_tokens_(options.expected_tokens),
        kv_bytes_per_token_(options.kv_bytes_per_token),
        cost_(cost) {}

  // Until the worker has computed the tokens of the prompt that it lacks, after
  // what it has to do already.
  double PrefillEnd(const RequestFacts& request, const Candidates& candidates,
                    const ClusterView& view, WorkerSlot slot) const {
    return view.columns.ahead[slot] + Prefill(request, candidates, slot);
  }
  // Of that, the computing alone.
  double Prefill(const RequestFacts& request, const Candidates& candidates,
                 WorkerSlot slot) const {
    const int cached = candidates.cached[slot];
    return cost_.PrefillSeconds(request.prompt_tokens - cached, cached);
  }
  // The least PrefillEnd of `slots`; infinite when there is none.
  double LeastPrefillEnd(const RequestFacts& request,
                         const Candidates& candidates, const ClusterView& view,
                         const SlotSet& slots) const;
  // Sending what the decode worker lacks.
  double Transfer(const RequestFacts& request, const Candidates& candidates,
                  WorkerSlot decode) const;
  // Generating, after the prompt: without what is ahead, stretched by what the
  // KV memory is short of.
  double Decode(const RequestFacts& request, const ClusterView& view,
                WorkerSlot slot) const {
    return DecodeShare(request) * (1 + view.columns.pressure[slot]);
  }
  double DecodeShare(const RequestFacts& request) const;

  // What a leg is predicted to put on its worker. `alone`: there is no prefill
  // leg.
  LoadShare DecodeLoad(const RequestFacts& request,
                       const Candidates& candidates, WorkerSlot slot,
                       bool alone) const;
  LoadShare PrefillLoad(const RequestFacts& request,
                        const Candidates& candidates, WorkerSlot slot) const;

 private:
  int Steps(const RequestFacts& request) const;

  int expected_tokens_;
  int64_t kv_bytes_per_token_;
  CostModel cost_;
};

}  // namespace penstock
