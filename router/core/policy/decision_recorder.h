#pragma once

#include <memory>
#include <optional>

#include "router/core/decision_record.h"
#include "router/core/policy/candidates.h"
#include "router/core/policy/pair_times.h"
#include "router/core/policy/policy_options.h"

namespace penstock {

// One decision as it was made.
struct MadeDecision {
  PolicyKind policy;
  const ClusterView& view;
  const Candidates& candidates;
  const PairTimes& times;
  WorkerSlot decode;
  std::optional<WorkerSlot> prefill;
  const SlotSet& partners;  // of the decode worker, with a prefill
};

// Whom the decision could have chosen, and at what predicted cost.
std::shared_ptr<const DecisionRecord> RecordDecision(const MadeDecision& made);

}  // namespace penstock
