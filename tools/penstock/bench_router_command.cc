#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/cost/cost_model.h"
#include "nlohmann/json.hpp"
#include "router/bench/decision_bench.h"
#include "router/bench/index_bench.h"
#include "router/bench/thread_cpu_clock.h"
#include "router/core/policy/placement_policy.h"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

struct Options {
  IndexWorkload::Options load;
  int decision_workers = 10'000;
  int milliseconds = 500;
  bool json = false;
};

Json DescribeRow(const BenchRow& row) {
  Json json = {{"what", row.what}, {"unit", row.unit}};
  if (row.target > 0) {
    json["target"] = row.target;
    json["more_is_better"] = row.more_is_better;
  }
  for (const auto& [name, value] : row.of) json["measured"][name] = value;
  return json;
}

// "runs" is ours; the factor is how much better it is than the better other.
void PrintRow(const BenchRow& row) {
  double best = 0;
  std::string others;
  for (const auto& [name, value] : row.of) {
    if (name == "runs") continue;
    const bool better = row.more_is_better ? value > best : value < best;
    if (best == 0 || better) best = value;
    others += absl::StrFormat("   %s %.6g", name, value);
  }
  const double own = row.of.at("runs");
  std::string verdict;
  if (row.target > 0) {
    const bool reached =
        row.more_is_better ? own >= row.target : own <= row.target;
    verdict = absl::StrFormat("   target %.6g %s", row.target,
                              reached ? "reached" : "MISSED");
  }
  std::string factor;
  if (best > 0) {
    factor = absl::StrFormat("   %.1fx",
                             row.more_is_better ? own / best : best / own);
  }
  std::cout << absl::StrFormat("%-44s %12.6g %-9s", row.what, own, row.unit)
            << verdict << others << factor << "\n";
}

absl::Status BenchRouter(const Options& options) {
  ThreadCpuClock clock;
  const absl::Duration time = absl::Milliseconds(options.milliseconds);
  std::vector<BenchRow> rows;
  {
    const IndexWorkload workload(options.load);
    IndexBench bench(workload, clock, time);
    for (auto make : {MakeRunIndex, MakeVectorIndex, MakeSetIndex}) {
      bench.Measure(make);
    }
    rows = bench.rows();
  }
  ASSIGN_OR_RETURN(const CostModel cost, CostModel::Create({}));
  const PlacementPolicy policy(PolicyOptions(), cost);
  DecisionBenchOptions decision;
  decision.workers = options.decision_workers;
  decision.prompt_blocks = static_cast<int>(options.load.prompt_blocks);
  decision.time = time;
  rows.push_back(
      {absl::StrFormat("decision among %d workers", decision.workers),
       "us",
       20,
       false,
       {{"runs", 1e6 * MeasureDecision(decision, policy, clock)}}});

  if (options.json) {
    Json document = {{"workers", options.load.workers},
                     {"blocks", options.load.blocks},
                     {"prompt_blocks", options.load.prompt_blocks},
                     {"measurements", Json::array()}};
    for (const BenchRow& row : rows) {
      document["measurements"].push_back(DescribeRow(row));
    }
    std::cout << JsonLine(document) << "\n";
    return absl::OkStatus();
  }
  std::cout << absl::StrFormat(
      "%d workers, %d blocks, prompts of %d; ours, then two plain ones\n\n",
      options.load.workers, options.load.blocks, options.load.prompt_blocks);
  for (const BenchRow& row : rows) PrintRow(row);
  return absl::OkStatus();
}

}  // namespace

void AddBenchRouterCommand(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "router", "The prefix index beside two plain ones, and a decision.");
  auto options = std::make_shared<Options>();
  command->add_option("--workers", options->load.workers, "that cache blocks")
      ->check(CLI::Range(1, 60'000));
  command->add_option("--blocks", options->load.blocks, "distinct ones, about")
      ->check(CLI::Range(10'000, 100'000'000));
  command
      ->add_option("--decision-workers", options->decision_workers,
                   "to choose from in one decision")
      ->check(CLI::Range(1, 60'000));
  command
      ->add_option("--time", options->milliseconds,
                   "milliseconds of each measurement")
      ->check(CLI::Range(1, 60'000));
  command->add_flag("--json", options->json, "one JSON document");
  command->callback([options, &action] {
    action = [options] { return BenchRouter(*options); };
  });
}

}  // namespace penstock
