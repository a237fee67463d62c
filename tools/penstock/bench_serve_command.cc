#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/client.h"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"
#include "tools/penstock/latency_summary.h"
#include "tools/penstock/load_generator.h"
#include "tools/penstock/load_plan.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr int kDefaultRequests = 64;

struct Options {
  std::string server = kDefaultServer;
  double rate = 0;
  std::optional<int> requests;
  int concurrency = 0;
  std::string trace;
  double scale = 1;
  int input_tokens = 200;
  int output_tokens = 64;
  uint64_t seed = 1;
  double timeout_seconds = 300;
  ServiceLevel level;
  bool json = false;
};

absl::StatusOr<std::vector<PlannedRequest>> Plan(
    const Options& options, const v1::GetModelInfoResponse& info) {
  const LoadLimits limits = {static_cast<int>(info.vocab_size()),
                             static_cast<int>(info.max_prompt_tokens()),
                             static_cast<int>(info.context_length())};
  if (limits.vocab_size < 2 || limits.max_prompt_tokens < 1 ||
      limits.context_length <= limits.max_prompt_tokens) {
    return absl::InternalError("the router does not describe its model");
  }
  if (!options.trace.empty()) {
    ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace,
                     ReadTraceFile(options.trace));
    return PlanTrace(trace,
                     options.requests.value_or(static_cast<int>(trace.size())),
                     options.scale, limits);
  }
  SeededRandom random(options.seed);
  return PlanUniform({options.requests.value_or(kDefaultRequests), options.rate,
                      options.input_tokens, options.output_tokens},
                     limits, random);
}

void PrintTable(const Json& summary) {
  std::cout << absl::StrFormat(
      "%d requests, %d failed, %d cut to the model's context, %.1f s\n"
      "%d prompt tokens, %.1f%% of them cached\n"
      "%.1f output tokens/s, %.2f requests/s, goodput %.2f requests/s\n\n"
      "%-8s %10s %10s %10s %10s\n",
      summary["requests"].get<int>(), summary["failed"].get<int>(),
      summary["cut"].get<int>(), summary["elapsed_s"].get<double>(),
      summary["prompt_tokens"].get<int64_t>(),
      100 * summary["hit_rate"].get<double>(),
      summary["output_tokens_per_s"].get<double>(),
      summary["requests_per_s"].get<double>(),
      summary["goodput_rps"].get<double>(), "ms", "p50", "p90", "p99", "max");
  for (const char* name : {"ttft", "itl", "tpot", "e2e"}) {
    const Json& row = summary[absl::StrCat(name, "_ms")];
    std::cout << absl::StrFormat(
        "%-8s %10.1f %10.1f %10.1f %10.1f\n", name, row["p50"].get<double>(),
        row["p90"].get<double>(), row["p99"].get<double>(),
        row["max"].get<double>());
  }
}

absl::Status BenchServe(const Options& options) {
  Client client(options.server);
  RETURN_IF_ERROR(client.WaitForConnection(absl::Seconds(5)));
  ASSIGN_OR_RETURN(const v1::GetModelInfoResponse info,
                   client.GetModelInfo(absl::Seconds(5)));
  ASSIGN_OR_RETURN(const std::vector<PlannedRequest> plan, Plan(options, info));

  LoadGenerator generator(
      client, {options.concurrency, absl::Seconds(options.timeout_seconds)});
  const LoadGenerator::Result result = generator.Run(plan);
  Json summary =
      SummarizeLoad(result.records, options.level, result.elapsed_ms);
  summary["cut"] =
      std::count_if(plan.begin(), plan.end(),
                    [](const PlannedRequest& request) { return request.cut; });
  if (!result.first_error.empty()) {
    std::cerr << "penstock: the first failure: " << result.first_error << "\n";
  }
  if (options.json) {
    std::cout << JsonLine(summary) << "\n";
  } else {
    PrintTable(summary);
  }
  if (!plan.empty() && summary["failed"] == plan.size()) {
    return absl::UnavailableError("every request failed");
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchServeCommand(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("serve", "Load on a served cluster.");
  auto options = std::make_shared<Options>();
  command->add_option("--server", options->server, "the router's address");
  command
      ->add_option("--rate", options->rate,
                   "requests a second, open loop; 0: all at once")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--requests", options->requests,
                   "how many; default 64, or all of the trace")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--concurrency", options->concurrency,
                   "that run at once at most; 0: no bound")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--trace", options->trace,
                      "recorded load to send, as tools/trace reads them; what "
                      "shares a hash id shares its tokens");
  command
      ->add_option("--scale,--speed", options->scale,
                   "so many times the trace's arrivals a second")
      ->check(CLI::PositiveNumber);
  command->add_option("--input-len", options->input_tokens, "prompt tokens")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--output-len", options->output_tokens, "tokens to write")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--seed", options->seed, "of prompts and arrivals");
  command
      ->add_option("--timeout", options->timeout_seconds,
                   "seconds of one request")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--slo-ttft", options->level.ttft_ms,
                   "ms to the first token for goodput; 0: any")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--slo-itl", options->level.itl_ms,
                   "mean ms between a request's tokens for goodput; 0: any")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "one JSON document");
  command->callback([options, &action] {
    action = [options] { return BenchServe(*options); };
  });
}

}  // namespace penstock
