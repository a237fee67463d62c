#pragma once

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "common/peer/worker_report.h"

namespace penstock {

// What the counts of a load report, and of a request, mean in time. Pure; a
// value type.
class WorkEstimate {
 public:
  // Of the default cost model.
  WorkEstimate();
  // Requests are taken to generate `expected_tokens`.
  WorkEstimate(const CostModel& cost, int expected_tokens)
      : cost_(cost), expected_tokens_(expected_tokens) {}

  // Until the worker would be done with what it reports.
  absl::Duration Ahead(const WorkerInfo& worker, const WorkerLoad& load) const;
  // Of one answer of so many tokens, to a prompt of which some are cached, on
  // workers that do nothing else.
  absl::Duration Service(int prompt, int cached, int tokens) const;

 private:
  CostModel cost_;
  int expected_tokens_ = 128;
};

}  // namespace penstock
