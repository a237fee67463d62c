#include "tools/simulator/cli/random_totals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock {

void RandomTotals::Add(const SimReport& report) {
  ++runs_;
  broken_ += !report.ok();
  sum_.events += report.events;
  sum_.faults += report.faults;
  sum_.requests += report.requests;
  sum_.finished += report.finished;
  sum_.failed += report.failed;
  sum_.refused += report.refused;
  sum_.tokens += report.tokens;
  sum_.tokens_computed += report.tokens_computed;
  sum_.virtual_time += report.virtual_time;
  for (const auto& [kind, count] : report.faults_by_kind) {
    sum_.faults_by_kind[kind] += count;
  }
  for (const auto& [reason, count] : report.failures) {
    sum_.failures[reason] += count;
  }
}

void RandomTotals::Print(double seconds, std::ostream& out) const {
  auto rate = [&](int64_t count) {
    return absl::StrFormat(
        "%.0f a second", static_cast<double>(count) / std::max(seconds, 1e-3));
  };
  out << "runs        " << runs_ << ", " << broken_ << " broke a promise\n"
      << "requests    " << sum_.requests << ": " << sum_.finished
      << " finished, " << sum_.failed << " failed, " << sum_.refused
      << " refused\n";
  for (const auto& [reason, count] : sum_.failures) {
    out << absl::StrFormat("  %-18s%d\n", reason, count);
  }
  out << "tokens      " << sum_.tokens << " delivered, " << sum_.tokens_computed
      << " positions computed\n"
      << "events      " << sum_.events << ", " << rate(sum_.events) << "\n"
      << "faults      " << sum_.faults << ", " << rate(sum_.faults) << "\n";
  for (const auto& [kind, count] : sum_.faults_by_kind) {
    out << absl::StrFormat("  %-18s%d\n", FaultName(kind), count);
  }
  out << absl::StrFormat("time        %.1f s, of %.0f s in the clusters\n",
                         seconds, absl::ToDoubleSeconds(sum_.virtual_time));
}

int PrintMarks(const std::vector<MarkCount>& marks, std::ostream& out) {
  int never = 0;
  for (const MarkCount& mark : marks) {
    if (mark.hits == 0) {
      ++never;
    } else {
      out << absl::StrFormat("  %9d  %s\n", mark.hits, mark.text);
    }
  }
  for (const MarkCount& mark : marks) {
    if (mark.hits == 0) out << "      never  " << mark.text << "\n";
  }
  return never;
}

}  // namespace penstock
