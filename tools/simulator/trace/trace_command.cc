#include "tools/simulator/trace/trace_command.h"

#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "router/core/policy/policy_options.h"
#include "tools/simulator/trace/trace_report.h"

namespace penstock {
namespace {

struct Flags {
  std::string file;
  std::string cost = "a100x4-70b";
  std::string pool = "preset";
  std::string policy = PolicyName(PolicyKind::kPrefixAware);
  double timeout_s = 600;
  double ttft_ms = 10000;
  double itl_ms = 100;
  TraceRunOptions run;
  bool json = false;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

absl::StatusOr<int64_t> ParsePool(const std::string& text,
                                  const CostPreset& preset) {
  if (text == "unlimited") return 0;
  if (text == "preset") return preset.pool_blocks;
  int64_t blocks = 0;
  if (absl::SimpleAtoi(text, &blocks) && blocks > 0) return blocks;
  return absl::InvalidArgumentError(absl::StrCat(
      "--pool-blocks: ", text,
      " is neither a number of KV blocks nor preset nor unlimited"));
}

absl::Status Trace(const Flags& flags) {
  TraceRunOptions options = flags.run;
  ASSIGN_OR_RETURN(options.preset, FindCostPreset(flags.cost));
  ASSIGN_OR_RETURN(options.policy.kind, ParsePolicy(flags.policy));
  ASSIGN_OR_RETURN(options.pool_blocks, ParsePool(flags.pool, options.preset));
  options.timeout = absl::Seconds(flags.timeout_s);
  options.ttft_slo = absl::Milliseconds(flags.ttft_ms);
  options.itl_slo = absl::Milliseconds(flags.itl_ms);
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
  if (flags.json) {
    std::cout << TraceReportJson(report, cost).dump() << "\n";
  } else {
    std::cout << TraceReportText(report, cost);
  }
  return absl::OkStatus();
}

}  // namespace

void AddTraceCommand(CLI::App& app, std::function<absl::Status()>& action) {
  auto flags = std::make_shared<Flags>();
  TraceRunOptions& run = flags->run;
  CLI::App* command = app.add_subcommand(
      "trace", "Replays a recorded load through a simulated cluster.");
  command->add_option("file", flags->file, "Trace: JSON lines or CSV.")
      ->required();
  command->add_option("--requests", run.requests,
                      "In all; the trace is played again, with other tokens, "
                      "until there are so many. 0: one pass.");
  command->add_option("--scale", run.arrival_scale,
                      "Times as fast as it was recorded.");
  command->add_option("--concurrency", run.concurrency,
                      "Instead of the recorded times: so many requests at "
                      "once. 0: by the recorded times.");
  command->add_option("--prefill", run.prefill_workers, "Prefill workers.");
  command->add_option("--decode", run.decode_workers, "Decode workers.");
  command->add_option(
      "--cost", flags->cost,
      absl::StrCat("What work takes: ", absl::StrJoin(CostPresetNames(), ", "),
                   "."));
  command->add_option("--pool-blocks", flags->pool,
                      "KV blocks of each worker: a number, preset or "
                      "unlimited.");
  command->add_option("--timeout", flags->timeout_s, "Seconds of a request.")
      ->check(CLI::Range(1e-3, 1e6));
  command->add_option("--slo-ttft", flags->ttft_ms,
                      "Good: first token within so many milliseconds.");
  command->add_option("--slo-itl", flags->itl_ms,
                      "Good: mean time between tokens at most so many "
                      "milliseconds.");
  command->add_option("--policy", flags->policy,
                      absl::StrCat("How the router chooses workers: ",
                                   absl::StrJoin(PolicyNames(), ", "), "."));
  command
      ->add_option("--expected-tokens", run.policy.expected_tokens,
                   "What the router takes a request to generate.")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--local-prefill-tokens", run.policy.local_prefill_tokens,
                   "Fewer uncached tokens are prefilled by decode.")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", run.seed, "Of ties and of tokens.");
  command->add_flag("--json", flags->json, "One line of JSON.");
  command->callback(
      [flags, &action] { action = [flags] { return Trace(*flags); }; });
}

}  // namespace penstock
