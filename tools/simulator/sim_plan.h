#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/model/generate_request.h"
#include "tools/simulator/fault.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {

// A request that a run submits.
struct SimRequest {
  absl::Duration at;
  // Of the prompt's own tokens and of the draws: what is generated does not
  // depend on the plan's other requests.
  uint64_t seed = 1;
  // Tokens of the prompt: the first `shared` of them are those of every prompt
  // with the same `prefix`, the rest its own.
  int prompt = 1;
  int prefix = 0;
  int shared = 0;
  int max_tokens = 1;
  int n = 1;
  int best_of = 0;
  int beam_width = 0;
  int logprobs = -1;
  int prompt_logprobs = -1;
  double temperature = 1;
  bool penalties = false;  // frequency, presence and repetition
  bool mirostat = false;
  std::string stop;  // a stop string without spaces; empty: none
  int priority = 0;
  absl::Duration timeout = absl::InfiniteDuration();
  absl::Duration cancel_after = absl::InfiniteDuration();

  friend bool operator==(const SimRequest&, const SimRequest&) = default;
};

// A whole run as data: equal plans give equal logs.
struct SimPlan {
  SimClusterOptions cluster;  // its seed is the run's
  std::vector<SimRequest> requests;
  std::vector<Fault> faults;
  // Once the last fault is over, everything has to have drained within this.
  absl::Duration drain_bound = absl::Minutes(2);
};

// How a plan's workers prefer transports: the nearest first.
constexpr int SimPreference(TransportKind kind) {
  switch (kind) {
    case TransportKind::kInproc:
      return 40;
    case TransportKind::kShm:
      return 20;
    case TransportKind::kTcp:
      break;
  }
  return 0;
}

// Makes the request that a run submits; `max_tokens` is left as it is.
// Precondition: what CheckRequest asks.
void FillRequest(const SimRequest& planned, GenerateRequest& request);

// A promise that was broken.
struct Violation {
  std::string promise;  // one of those in docs/simulation.md
  std::string what;
};

struct SimReport {
  // Empty, or the first promise that was broken, and when.
  std::string promise, violation;
  // When violated: the last lines of the log.
  std::vector<std::string> last_events;
  uint64_t log_hash = 0;
  int64_t events = 0;
  int64_t faults = 0;  // that took effect
  std::map<FaultKind, int64_t> faults_by_kind;
  int64_t requests = 0, finished = 0, failed = 0, refused = 0;
  std::map<std::string, int64_t> failures;  // by reason
  int64_t tokens = 0;                       // delivered
  int64_t tokens_computed = 0;              // rows of all steps
  absl::Duration virtual_time;

  bool ok() const { return promise.empty(); }
};

// Runs a plan to its end or its first violation, checking every invariant after
// every event. Deterministic, single-threaded. `trace` is called with each line
// of the log as it happens: they are there when a run aborts.
SimReport RunPlan(
    const SimPlan& plan,
    const std::function<void(const std::string& line)>& trace = {});

// A random cluster, load and faults, all from the seed.
SimPlan RandomPlan(uint64_t seed);

// Runs a plan; RunPlan, or one that survives what it breaks.
using PlanRunner = std::function<SimReport(const SimPlan&)>;

// A smaller plan that still breaks the same promise: faults first, then
// requests, are left out while it does. `plan` must fail; at most `max_runs`
// runs.
SimPlan Shrink(const SimPlan& plan, int max_runs, const PlanRunner& run);

}  // namespace penstock
