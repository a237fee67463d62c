#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tools/simulator/cli/sim_command.h"
#include "tools/simulator/plan_text.h"
#include "tools/simulator/scenario.h"

namespace penstock {
namespace {

struct Options {
  std::string name;
  std::string plan;
  uint64_t seed = 1;
  bool trace = false;
};

void PrintEvents(const std::vector<std::string>& events) {
  for (const std::string& event : events) std::cout << event << "\n";
}

absl::StatusOr<SimPlan> PlanOf(const Options& options) {
  if (options.plan.empty()) return RandomPlan(options.seed);
  std::ifstream file(options.plan);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot read ", options.plan));
  }
  absl::StatusOr<SimPlan> plan = ParsePlan(text.str());
  if (!plan.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.plan, ": ", plan.status().message()));
  }
  return plan;
}

absl::Status RunOnePlan(const Options& options) {
  ASSIGN_OR_RETURN(const SimPlan plan, PlanOf(options));
  SimReport report;
  if (options.trace) {
    // Flushed: a run that aborts has shown what led to it.
    report = RunPlan(plan, [](const std::string& event) {
      std::cout << event << "\n" << std::flush;
    });
  } else {
    report = RunPlan(plan);
    PrintEvents(report.last_events);
  }
  std::cout << absl::StrFormat(
      "%d requests: %d finished, %d failed, %d refused; %d tokens, %d faults, "
      "%d events, log %016x\n",
      report.requests, report.finished, report.failed, report.refused,
      report.tokens, report.faults, report.events, report.log_hash);
  if (report.ok()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("\"", report.promise, "\" is broken: ", report.violation));
}

absl::Status RunScenario(const Options& options, const Scenario& scenario) {
  const ScenarioResult result = scenario.run(options.seed);
  if (options.trace) PrintEvents(result.log);
  std::cout << scenario.name << "\n  expected: " << scenario.expected
            << "\n  measured: " << result.measured
            << absl::StrFormat("\n  log %016x\n", result.log_hash);
  if (result.failure.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(std::string(scenario.name), ": ", result.failure));
}

absl::Status RunNamed(const Options& options) {
  if (options.name.empty() && options.plan.empty()) {
    return absl::InvalidArgumentError(
        "run wants NAME, one of those that `list` shows or \"random\", or "
        "--plan FILE");
  }
  if (!options.plan.empty() || options.name == "random") {
    return RunOnePlan(options);
  }
  for (const Scenario& scenario : Scenarios()) {
    if (scenario.name == options.name) return RunScenario(options, scenario);
  }
  return absl::NotFoundError(absl::StrCat(
      "no scenario is called \"", options.name,
      "\": `list` shows those there are, `random` is the plan of a seed"));
}

}  // namespace

void AddSimRunCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* run = app.add_subcommand(
      "run", "One named scenario, one random seed, or a saved plan.");
  CLI::Option* name = run->add_option("NAME", options->name,
                                      "A scenario's name, or \"random\".");
  CLI::Option* plan =
      run->add_option("--plan", options->plan, "A saved plan instead.")
          ->excludes(name);
  run->add_option("--seed", options->seed, "Of the run; a plan has its own.")
      ->excludes(plan);
  run->add_flag("--trace", options->trace,
                "Print every event: of a scenario at its end, else as it "
                "happens.");
  run->callback([&action, options] {
    action = [options] { return RunNamed(*options); };
  });
}

}  // namespace penstock
