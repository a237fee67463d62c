#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "common/base/status_macros.h"
#include "tools/simulator/cli/seed_range.h"
#include "tools/simulator/cli/sim_command.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {
namespace {

absl::Status PrintHashes(const std::string& seeds) {
  ASSIGN_OR_RETURN(const SeedRange range, ParseSeedRange(seeds));
  for (uint64_t seed = range.first; seed <= range.last; ++seed) {
    std::printf("%" PRIu64 " %016" PRIx64 "\n", seed,
                RunPlan(RandomPlan(seed)).log_hash);
  }
  return absl::OkStatus();
}

}  // namespace

void AddSimHashCommand(CLI::App& app, Action& action) {
  CLI::App* hash = app.add_subcommand(
      "hash", "The hash of each seed's event log, to compare builds.");
  auto seeds = std::make_shared<std::string>("1..8");
  hash->add_option("--seeds", *seeds, "One seed, or a range A..B.");
  hash->callback(
      [&action, seeds] { action = [seeds] { return PrintHashes(*seeds); }; });
}

}  // namespace penstock
