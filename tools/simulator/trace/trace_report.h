#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "tools/simulator/trace/trace_run.h"

namespace penstock {

// What a run took of the machine.
struct TraceCost {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  int64_t peak_bytes = 0;  // resident
};

// The report as a document with a stable set of keys; durations in
// milliseconds.
nlohmann::json TraceReportJson(const TraceReport& report,
                               const TraceCost& cost);

// The same for people.
std::string TraceReportText(const TraceReport& report, const TraceCost& cost);

}  // namespace penstock
