#pragma once

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "common/peer/worker_report.h"

namespace penstock {

// How many times as long as assumed a worker takes; both are settled, so that
// workers that are alike have equal ones.
struct WorkerPace {
  double prefill = 1;
  double decode = 1;

  friend bool operator==(const WorkerPace&, const WorkerPace&) = default;
};

// Exact at the assumed pace, which sums of loads rely on.
absl::Duration Paced(absl::Duration time, double pace);

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
  absl::Duration Ahead(const WorkerInfo& worker, const WorkerLoad& load,
                       const WorkerPace& pace = {}) const;
  // By what the worker measured: of a prompt, and of an answer's part of decode
  // steps, of usual lengths. A pace that is off by less than a quarter stays,
  // and others are powers of the fourth root of 2: what workers measure differs
  // a little always, and ties have to stay ties. Costs of zero say nothing.
  WorkerPace PaceOf(const StepCosts& measured, const WorkerPace& before) const;
  // Of one answer of so many tokens, to a prompt of which some are cached, on
  // workers that do nothing else.
  absl::Duration Service(int prompt, int cached, int tokens) const;

 private:
  CostModel cost_;
  int expected_tokens_ = 128;
};

}  // namespace penstock
