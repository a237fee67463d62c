#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cost/cost_model.h"
#include "common/env/random.h"
#include "common/worker/core/worker_core.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/router_core.h"
#include "tools/simulator/sim_model.h"
#include "tools/simulator/trace/cost_preset.h"
#include "tools/simulator/trace/timed_network.h"

namespace penstock {

class TraceWorker;
struct LegEvent;

struct TraceClusterOptions {
  CostPreset preset;
  int prefill_workers = 1;
  int decode_workers = 1;
  int pool_blocks = 0;  // of each worker
  int context_length = 0;
  absl::Duration latency = absl::Microseconds(200);
  RouterCore::Options router;
  PolicyOptions policy;
  uint64_t seed = 1;
};

// A router and its workers for loads of any size: the production cores, with
// ports that cost virtual time and nothing else. Only who has something to do
// runs; what a worker says at one instant reaches the router as one event.
// Single-threaded; equal options and calls give equal runs.
class TraceCluster {
 public:
  // INVALID_ARGUMENT names an option that the cores refuse.
  static absl::StatusOr<std::unique_ptr<TraceCluster>> Create(
      TraceClusterOptions options);
  ~TraceCluster();

  RouterCore& router() { return *router_; }
  const ManualClock& clock() const { return clock_; }
  const TraceClusterOptions& options() const { return options_; }

  // Runs `action` at a virtual time from now.
  void After(absl::Duration delay, std::function<void()> action);

  // Runs until `done`.
  void RunUntil(const std::function<bool()>& done);

  // Runs until nothing is left to do. Empty, or what does not add up then: a
  // leak, an account that is not zero. Precondition: every request has ended.
  std::string Finish();

  int64_t events() const { return events_; }
  int64_t steps() const;
  uint64_t bytes_moved() const { return network_.bytes_moved(); }

 private:
  class Legs;

  TraceCluster(TraceClusterOptions options, const CostModel& cost);
  absl::Status Start();
  absl::Status AddWorker(const std::string& name, WorkerRoles roles);
  void Deliver(TraceWorker& worker);
  void Heartbeat(TraceWorker& worker);
  void SendCacheEvents(TraceWorker& worker);

  TraceClusterOptions options_;
  CostModel cost_;
  ManualClock clock_;
  Timers timers_;
  SeededRandom random_;
  BlockHasher hasher_{HashSecret("simulation")};
  SimTokenizer tokenizer_;
  PlacementPolicy policy_;
  NullRouterProbe probe_;
  TimedNetwork network_;
  std::unique_ptr<Legs> legs_;
  std::unique_ptr<RouterCore> router_;
  std::map<std::string, std::unique_ptr<TraceWorker>> workers_;
  std::vector<LegEvent> delivered_;  // at once, the last time
  int64_t events_ = 0;
};

}  // namespace penstock
