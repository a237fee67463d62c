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
      : local_prefill_tokens_(options.local_prefill_tokens),
        spills_(options.spill_prefill &&
                options.kind == PolicyKind::kPrefixAware),
        expected_tokens_(options.expected_tokens),
        kv_bytes_per_token_(options.kv_bytes_per_token),
        cost_(cost) {}

  // Prompts that lack fewer tokens need no prefill worker.
  int local_prefill_tokens() const { return local_prefill_tokens_; }
  // Does decode prefill whenever that is predicted to cost less? Only for a
  // policy that believes in predictions.
  bool spills() const { return spills_; }

  // These are at the assumed pace: a worker's own takes them WorkerPace times.
  double Prefill(int tokens, int cached) const {
    return cost_.PrefillSeconds(tokens, cached);
  }
  // Sending the KV of so many tokens.
  double Transfer(int tokens) const;
  // Generating the answer, where nothing is short.
  double DecodeShare(const RequestFacts& request) const;

  // What a leg is predicted to put on its worker, which has `cached` tokens of
  // the prompt. `alone`: there is no prefill leg.
  LoadShare DecodeLoad(const RequestFacts& request, const WorkerPace& pace,
                       int cached, bool alone) const;
  LoadShare PrefillLoad(const RequestFacts& request, const WorkerPace& pace,
                        int cached) const;

 private:
  absl::Duration Prompt(const RequestFacts& request, const WorkerPace& pace,
                        int cached) const;
  int Steps(const RequestFacts& request) const;

  int local_prefill_tokens_;
  bool spills_;
  int expected_tokens_;
  int64_t kv_bytes_per_token_;
  CostModel cost_;
};

}  // namespace penstock
