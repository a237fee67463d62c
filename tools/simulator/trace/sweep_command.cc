#include "tools/simulator/trace/sweep_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "tools/simulator/trace/trace_flags.h"
#include "tools/simulator/trace/trace_report.h"
#include "tools/simulator/trace/trace_sweep.h"

namespace penstock {
namespace {

struct Flags {
  std::vector<std::string> files;
  TraceFlags trace;
  std::vector<std::string> policies;
  double scale = 0;
  TraceSweepOptions sweep;
};

double Percent(int64_t part, int64_t whole) {
  return whole == 0
             ? 0
             : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void PrintHeader() {
  std::cout << absl::StrFormat("%6s %8s  %-16s%7s%10s%10s%10s%9s%9s%8s%11s\n",
                               "", "scale", "policy", "hit %", "ttft p50",
                               "p90", "p99", "itl p50", "p99", "good %",
                               "goodput/s");
}

void PrintRow(const TraceSweepRow& row) {
  const TraceReport& r = row.report;
  auto ms = [](const DurationHistogram& histogram, double percent) {
    return absl::ToDoubleMilliseconds(histogram.Percentile(percent));
  };
  std::cout << absl::StrFormat(
                   "%5.2fx %8.4f  %-16s%7.2f%10.0f%10.0f%10.0f%9.1f%9.1f%8.1f"
                   "%11.3f\n",
                   row.factor, row.scale, PolicyName(row.policy),
                   Percent(r.cached_blocks, r.blocks), ms(r.ttft, 50),
                   ms(r.ttft, 90), ms(r.ttft, 99), ms(r.itl, 50), ms(r.itl, 99),
                   Percent(r.good, r.requests), r.goodput())
            << std::flush;
}

void PrintJson(const std::string& file, const TraceSweepRow& row) {
  nlohmann::json json = TraceReportJson(row.report, {});
  json["file"] = file;
  json["factor"] = row.factor;
  json["scale"] = row.scale;
  json["policy"] = PolicyName(row.policy);
  std::cout << json.dump() << std::endl;
}

absl::Status SweepFile(const std::string& file, const Flags& flags,
                       const TraceSweepOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace, ReadTraceFile(file));
  double scale = flags.scale;
  if (scale == 0) {
    ASSIGN_OR_RETURN(scale, FindSweepScale(trace, options));
  }
  const bool text = !flags.trace.json;
  if (text) {
    std::cout << file << "\n";
    PrintHeader();
  }
  ASSIGN_OR_RETURN(const std::vector<TraceSweepRow> rows,
                   RunTraceSweep(trace, options, scale, [&](const auto& row) {
                     text ? PrintRow(row) : PrintJson(file, row);
                   }));
  if (!text) return absl::OkStatus();
  for (PolicyKind policy : options.policies) {
    if (policy == options.yardstick) continue;
    const TraceSweepVerdict verdict = JudgeTraceSweep(rows, options, policy);
    std::cout << absl::StrFormat(
        "%s: at 1x its first token's p90 is %.2f times as soon as %s's; its "
        "goodput is never under %.1f%% of another's (at %.2fx)\n",
        PolicyName(policy), verdict.ttft_gain, PolicyName(options.yardstick),
        100 * verdict.worst_goodput, verdict.worst_factor);
  }
  return absl::OkStatus();
}

absl::Status Sweep(const Flags& flags) {
  TraceSweepOptions options = flags.sweep;
  ASSIGN_OR_RETURN(options.run, TraceRunOptionsOf(flags.trace));
  if (!flags.policies.empty()) options.policies.clear();
  for (const std::string& name : flags.policies) {
    ASSIGN_OR_RETURN(const PolicyKind policy, ParsePolicy(name));
    options.policies.push_back(policy);
  }
  for (const std::string& file : flags.files) {
    RETURN_IF_ERROR(SweepFile(file, flags, options));
  }
  return absl::OkStatus();
}

}  // namespace

void AddSweepCommand(CLI::App& app, std::function<absl::Status()>& action) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "sweep", "Replays recorded loads under several policies, side by side.");
  command->add_option("files", flags->files, "Traces: JSON lines or CSV.")
      ->required();
  AddTraceFlags(*command, flags->trace);
  command
      ->add_option("--policies", flags->policies,
                   absl::StrCat("Of ", absl::StrJoin(PolicyNames(), ", "),
                                "; round_robin, least_load and prefix_aware "
                                "unless said."))
      ->delimiter(',');
  command
      ->add_option("--scale", flags->scale,
                   "Scale 1x. 0: the highest at which round robin has "
                   "--good-share of good requests.")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--good-share", flags->sweep.good_share, "See --scale.")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--factors", flags->sweep.factors, "Times scale 1x.")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1e6));
  command->callback(
      [flags, &action] { action = [flags] { return Sweep(*flags); }; });
}

}  // namespace penstock
