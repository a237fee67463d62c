#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/simulator/cli/random_totals.h"
#include "tools/simulator/cli/runs_apart.h"
#include "tools/simulator/cli/seed_range.h"
#include "tools/simulator/cli/sim_command.h"
#include "tools/simulator/plan_text.h"

namespace penstock {
namespace {

struct Options {
  std::string program;
  std::string seeds = "1..100";
  int jobs = 1;
  int shrink_runs = 300;
  bool require_marks = false;
  std::string save;
};

absl::Status CannotWrite(const std::string& file) {
  return absl::UnavailableError(absl::StrCat("cannot write ", file));
}

// Everything that is needed to find the reason.
absl::Status ReportFailure(const Options& options, uint64_t seed,
                           const SimReport& report) {
  std::cout << "\nseed " << seed << " breaks \"" << report.promise
            << "\": " << report.violation << "\nreplay: " << options.program
            << " run random --seed " << seed << " --trace\n"
            << "the last events:\n";
  for (const std::string& event : report.last_events) {
    std::cout << "  " << event << "\n";
  }
  if (options.shrink_runs > 0) {
    std::ofstream file;
    if (!options.save.empty()) {
      // Before the runs, which take minutes.
      file.open(options.save);
      if (!file) return CannotWrite(options.save);
    }
    const SimPlan plan = RandomPlan(seed);
    const SimPlan smaller = Shrink(plan, options.shrink_runs, RunPlanApart);
    const std::string text = FormatPlan(smaller);
    std::cout << "of " << plan.faults.size() << " faults and "
              << plan.requests.size() << " requests these break it too:\n"
              << text;
    if (!options.save.empty()) {
      file << "# " << report.promise << "\n" << text;
      if (!file.flush()) return CannotWrite(options.save);
      std::cout << "replay: " << options.program << " run --plan "
                << options.save << " --trace\n";
    }
  }
  return absl::InternalError(
      absl::StrCat("seed ", seed, " breaks \"", report.promise, "\""));
}

absl::Status RunRandom(const Options& options) {
  ASSIGN_OR_RETURN(const SeedRange seeds, ParseSeedRange(options.seeds));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  RandomTotals totals;
  std::optional<std::pair<uint64_t, SimReport>> broken;
  const std::vector<MarkCount> marks = RunSeedsApart(
      seeds, options.jobs, [&](uint64_t seed, const SimReport& report) {
        totals.Add(report);
        if (!report.ok()) broken = {seed, report};
        return report.ok();
      });
  std::cout << "seeds " << options.seeds << "\n";
  totals.Print(std::chrono::duration<double>(Clock::now() - start).count(),
               std::cout);
  if (broken.has_value()) {
    return ReportFailure(options, broken->first, broken->second);
  }
  std::cout << "marks\n";
  const int never = PrintMarks(marks, std::cout);
  if (options.require_marks && never > 0) {
    return absl::InternalError(
        absl::StrCat(never, " of ", marks.size(), " marks never fired"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddSimRandomCommand(CLI::App& app, const std::string& program,
                         Action& action) {
  auto options = std::make_shared<Options>();
  options->program = program;
  CLI::App* random = app.add_subcommand(
      "random",
      "Random clusters, load and faults; stops at the first failure.");
  random->add_option("--seeds", options->seeds, "One seed, or a range A..B.");
  random->add_option("--jobs", options->jobs, "Processes, of one thread each.")
      ->check(CLI::Range(1, 256));
  random
      ->add_option("--shrink-runs", options->shrink_runs,
                   "Runs to spend on a smaller plan that fails too; 0: none.")
      ->check(CLI::Range(0, 1000000));
  random->add_option("--save", options->save,
                     "File for the smaller plan, when a seed fails.");
  random->add_flag("--require-marks", options->require_marks,
                   "Fail when some rare branch was never taken.");
  random->callback([&action, options] {
    action = [options] { return RunRandom(*options); };
  });
}

}  // namespace penstock
