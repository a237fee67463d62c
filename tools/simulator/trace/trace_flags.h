#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "tools/simulator/trace/trace_run.h"

namespace penstock {

// What every command that replays a trace is asked for: the cluster, what work
// takes there and what counts as good.
struct TraceFlags {
  std::string cost = "a100x4-70b";
  std::string pool = "preset";
  double timeout_s = 600;
  double ttft_ms = 10000;
  double itl_ms = 100;
  TraceRunOptions run;
  bool json = false;
};

// `flags` outlives the parsing.
void AddTraceFlags(CLI::App& command, TraceFlags& flags);

// INVALID_ARGUMENT names the flag.
absl::StatusOr<TraceRunOptions> TraceRunOptionsOf(const TraceFlags& flags);

}  // namespace penstock
