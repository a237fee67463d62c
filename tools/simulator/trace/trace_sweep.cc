#include "tools/simulator/trace/trace_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr double kMostScale = 1024;
constexpr double kPrecision = 1.1;  // between what holds and what does not

TraceRunOptions AtScale(TraceRunOptions run, PolicyKind policy, double scale) {
  run.policy.kind = policy;
  run.arrival_scale = scale;
  return run;
}

double Seconds(absl::Duration duration) {
  return std::max(1e-9, absl::ToDoubleSeconds(duration));
}

}  // namespace

absl::StatusOr<double> FindSweepScale(const std::vector<TraceRequest>& trace,
                                      const TraceSweepOptions& options) {
  auto holds = [&](double scale) -> absl::StatusOr<bool> {
    return TraceMeets(options.good_share, trace,
                      AtScale(options.run, options.yardstick, scale));
  };
  double good = 1, bad = 1;
  ASSIGN_OR_RETURN(bool ok, holds(1));
  // Away from 1 until the answer changes.
  for (const bool first = ok; ok == first;) {
    if (good >= kMostScale || bad <= 1 / kMostScale) {
      return absl::NotFoundError(absl::StrCat(
          PolicyName(options.yardstick), " has ", first ? "at least" : "under",
          " ", 100 * options.good_share, "% good requests at any scale"));
    }
    (first ? good : bad) = first ? bad : good;
    (first ? bad : good) *= first ? 2 : 0.5;
    ASSIGN_OR_RETURN(ok, holds(first ? bad : good));
  }
  while (bad / good > kPrecision) {
    const double middle = std::sqrt(good * bad);
    ASSIGN_OR_RETURN(ok, holds(middle));
    (ok ? good : bad) = middle;
  }
  return good;
}

absl::StatusOr<std::vector<TraceSweepRow>> RunTraceSweep(
    const std::vector<TraceRequest>& trace, const TraceSweepOptions& options,
    double scale, const std::function<void(const TraceSweepRow&)>& on_row) {
  std::vector<TraceSweepRow> rows;
  for (double factor : options.factors) {
    for (PolicyKind policy : options.policies) {
      TraceSweepRow row;
      row.factor = factor;
      row.scale = factor * scale;
      row.policy = policy;
      ASSIGN_OR_RETURN(
          row.report, RunTrace(trace, AtScale(options.run, policy, row.scale)));
      on_row(row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

TraceSweepVerdict JudgeTraceSweep(absl::Span<const TraceSweepRow> rows,
                                  const TraceSweepOptions& options,
                                  PolicyKind policy) {
  TraceSweepVerdict verdict;
  verdict.worst_goodput = std::numeric_limits<double>::infinity();
  absl::Duration yardstick, judged;
  for (const TraceSweepRow& row : rows) {
    const absl::Duration p90 = row.report.ttft.Percentile(90);
    if (row.factor == 1 && row.policy == options.yardstick) yardstick = p90;
    if (row.factor == 1 && row.policy == policy) judged = p90;
    if (row.policy != policy) continue;
    for (const TraceSweepRow& other : rows) {
      if (other.factor != row.factor || other.policy == policy ||
          other.report.goodput() <= 0) {
        continue;
      }
      const double ratio = row.report.goodput() / other.report.goodput();
      if (ratio >= verdict.worst_goodput) continue;
      verdict.worst_goodput = ratio;
      verdict.worst_factor = row.factor;
    }
  }
  verdict.ttft_gain = Seconds(yardstick) / Seconds(judged);
  return verdict;
}

}  // namespace penstock
