#pragma once

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "common/peer/worker_report.h"

namespace penstock {

// What the counts of a load report mean in time. Pure; a value type.
class WorkEstimate {
 public:
  // Of the default cost model.
  WorkEstimate();
  // Requests are taken to generate `expected_tokens`.
  WorkEstimate(const CostModel& cost, int expected_tokens)
      : cost_(cost), expected_tokens_(expected_tokens) {}

  // Until the worker would be done with what it reports.
  absl::Duration Ahead(const WorkerInfo& worker, const WorkerLoad& load) const;

 private:
  CostModel cost_;
  int expected_tokens_ = 128;
};

}  // namespace penstock
