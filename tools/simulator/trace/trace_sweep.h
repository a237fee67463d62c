#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "router/core/policy/policy_options.h"
#include "tools/simulator/trace/trace_run.h"

namespace penstock {

// Replays one trace under several policies, each at the same arrival scales.
struct TraceSweepOptions {
  TraceRunOptions run;  // its scale and its policy's kind are the sweep's
  std::vector<PolicyKind> policies = {PolicyKind::kRoundRobin,
                                      PolicyKind::kLeastLoad,
                                      PolicyKind::kPrefixAware};
  // Scale 1x is the highest at which so large a share of this policy's requests
  // is good.
  PolicyKind yardstick = PolicyKind::kRoundRobin;
  double good_share = 0.5;
  std::vector<double> factors = {0.25, 0.5, 1, 2, 4};  // times 1x
};

struct TraceSweepRow {
  double factor = 1;
  double scale = 1;
  PolicyKind policy = PolicyKind::kRoundRobin;
  TraceReport report;
};

// Scale 1x, found within a tenth: lower scales are taken to do no worse.
// NOT_FOUND: the yardstick does not get there at any scale from 1/1024 to 1024.
absl::StatusOr<double> FindSweepScale(const std::vector<TraceRequest>& trace,
                                      const TraceSweepOptions& options);

// A row for each factor and policy, in that order, around 1x at `scale`.
// `on_row` hears of each as soon as it is there. Errors as RunTrace.
absl::StatusOr<std::vector<TraceSweepRow>> RunTraceSweep(
    const std::vector<TraceRequest>& trace, const TraceSweepOptions& options,
    double scale, const std::function<void(const TraceSweepRow&)>& on_row);

// How one policy did beside the others.
struct TraceSweepVerdict {
  // At 1x: the yardstick's p90 of the time to the first token, over this one's.
  double ttft_gain = 0;
  // This one's goodput over the best other's, where that is least.
  double worst_goodput = 0;
  double worst_factor = 0;
};

// Precondition: `rows` are a whole sweep's, `policy` among them.
TraceSweepVerdict JudgeTraceSweep(absl::Span<const TraceSweepRow> rows,
                                  const TraceSweepOptions& options,
                                  PolicyKind policy);

}  // namespace penstock
