#pragma once

#include "absl/types/span.h"
#include "common/base/id.h"
#include "router/core/cluster_view.h"
#include "router/core/routing_policy.h"

namespace penstock {

// Who has more of a prompt than the worker that is to compute it.
struct LegSource {
  const WorkerView* owner = nullptr;  // of the view; null: nobody
  int blocks = 0;                     // leading ones
};

// Of those whose pages that worker can take, the one with most, and of equals
// the first; nobody, when the worker itself has hardly fewer. `chain`: of the
// prompt. O(workers that have any of it). Pure.
LegSource FindSource(const ClusterView& view, absl::Span<const BlockHash> chain,
                     const LegPlacement& placement);

}  // namespace penstock
