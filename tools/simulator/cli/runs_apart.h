#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/sometimes.h"
#include "tools/simulator/cli/seed_range.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {

// The promise that a run breaks that ends its process: a CHECK, a sanitizer's
// report, or more time than a run may take.
inline constexpr char kProcessLives[] = "no check fails";

// Runs a plan in a process of its own. What that process said last is the
// violation when it dies. Precondition: this process has one thread.
SimReport RunPlanApart(const SimPlan& plan);

// Runs each seed's random plan once, in `jobs` processes with one thread each.
// `on_report` gets the reports as they come, until it answers false; then, or
// after the last, the processes are gone. Returns what the marks counted.
// Precondition: this process has one thread.
std::vector<MarkCount> RunSeedsApart(
    const SeedRange& seeds, int jobs,
    const std::function<bool(uint64_t seed, const SimReport&)>& on_report);

}  // namespace penstock
