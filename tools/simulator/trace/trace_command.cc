#include "tools/simulator/trace/trace_command.h"

#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "router/core/policy/policy_options.h"
#include "tools/simulator/trace/trace_flags.h"
#include "tools/simulator/trace/trace_report.h"

namespace penstock {
namespace {

struct Flags {
  std::string file;
  std::string policy = PolicyName(PolicyKind::kPrefixAware);
  TraceFlags trace;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

absl::Status Trace(const Flags& flags) {
  ASSIGN_OR_RETURN(TraceRunOptions options, TraceRunOptionsOf(flags.trace));
  ASSIGN_OR_RETURN(options.policy.kind, ParsePolicy(flags.policy));
  ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace,
                   ReadTraceFile(flags.file));
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const TraceReport report, RunTrace(trace, options));
  const std::chrono::duration<double> wall =
      std::chrono::steady_clock::now() - start;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const TraceCost cost = {wall.count(),
                          Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
                          int64_t{usage.ru_maxrss} * 1024};
  if (flags.trace.json) {
    std::cout << TraceReportJson(report, cost).dump() << "\n";
  } else {
    std::cout << TraceReportText(report, cost);
  }
  return absl::OkStatus();
}

}  // namespace

void AddTraceCommand(CLI::App& app, std::function<absl::Status()>& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "trace", "Replays a recorded load through a simulated cluster.");
  command->add_option("file", flags->file, "Trace: JSON lines or CSV.")
      ->required();
  AddTraceFlags(*command, flags->trace);
  command->add_option("--scale", flags->trace.run.arrival_scale,
                      "Times as fast as it was recorded.");
  command->add_option("--concurrency", flags->trace.run.concurrency,
                      "Instead of the recorded times: so many requests at "
                      "once. 0: by the recorded times.");
  command->add_option("--policy", flags->policy,
                      absl::StrCat("How the router chooses workers: ",
                                   absl::StrJoin(PolicyNames(), ", "), "."));
  command->callback(
      [flags, &action] { action = [flags] { return Trace(*flags); }; });
}

}  // namespace penstock
