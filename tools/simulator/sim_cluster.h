#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cost/cost_model.h"
#include "common/env/random.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/router_core.h"
#include "tools/simulator/any_place_policy.h"
#include "tools/simulator/fault.h"
#include "tools/simulator/sim_client.h"
#include "tools/simulator/sim_log.h"
#include "tools/simulator/sim_router.h"
#include "tools/simulator/sim_router_link.h"
#include "tools/simulator/sim_worker.h"

namespace penstock {

struct SimClusterOptions {
  uint64_t seed = 1;
  int routers = 1;  // see RoutersOf
  int prefill_workers = 1;
  int decode_workers = 1;
  bool both_roles = false;  // one worker with both instead
  SimWorkerOptions worker;  // of each; key and roles are filled in
  // If not empty: exactly these, each with its name and roles.
  std::vector<SimWorkerOptions> workers = {};
  RouterCore::Options router;
  // Requests are placed by AnyPlacePolicy.
  bool any_place = false;
  // Decode prefills whatever that is predicted to cost less there.
  bool spill_prefill = false;
  absl::Duration latency = absl::Milliseconds(1);
  // Of each host's link, for pages; 0: no limit.
  double bytes_per_second = 0;
  // What a page counts as on a link; 0: its true size.
  uint64_t page_bytes = 0;
  // The log's last lines that are kept; all count in its hash.
  size_t log_lines = 100'000;
  // Called with each line of the log as it happens.
  std::function<void(const std::string& line)> on_line = {};
  // False: nothing is logged, which saves half of the time.
  bool log = true;
  // Outlive the cluster; null: SimTokenizer, and nobody listens.
  const Tokenizer* tokenizer = nullptr;
  RouterProbe* probe = nullptr;
};

// The workers that a cluster of these options has, in order.
std::vector<SimWorkerOptions> WorkersOf(const SimClusterOptions& options);

// The routers' names: "router", then "router1", "router2", ...
std::vector<std::string> RoutersOf(const SimClusterOptions& options);

// Routers and their workers: production cores, simulated ports, one thread, one
// queue of events in the world's time. Each host has a clock of its own, which
// never shows the world's. Everything that happens is a line of the log; equal
// options and calls give equal logs. Single-threaded; owns its hosts, processes
// and clients.
class SimCluster {
 public:
  // Returns when every router knows every worker: the start of the run.
  explicit SimCluster(SimClusterOptions options);
  ~SimCluster();

  // A request of `prompt` random tokens; the client lives as long as the
  // cluster. Null: refused (the reason is in refused()), at once; a frozen
  // router refuses later, as the client's end.
  SimClient* Submit(int prompt, int max_tokens,
                    absl::Duration timeout = absl::InfiniteDuration());
  // The same with what else `change` asks.
  SimClient* Submit(int prompt, int max_tokens,
                    const std::function<void(GenerateRequest&)>& change);
  // Requests go to this router from now on; at first to "router".
  void UseRouter(const std::string& name);
  void Cancel(const SimClient* client);
  const absl::Status& refused() const { return refused_; }
  // The world's time: no host's clock says the same.
  Instant now() const { return clock_.Now(); }
  Instant start() const { return start_; }

  // A worker by name, or a router, whose clients then end with UNAVAILABLE.
  // Dead ones: no-op.
  void Kill(const std::string& host);
  // Same name, new incarnation, empty memory. Living ones: no-op.
  void Restart(const std::string& host);

  // Makes a fault happen at `fault.at` after the start of the run; at once when
  // that is past. CHECKs that its host is known.
  void Inject(const Fault& fault);
  // Faults that took effect: on a host that was alive; of those that are a
  // matter of chance, each time that they struck.
  std::map<FaultKind, int64_t> faults_by_kind() const;
  int64_t faults() const;  // of all kinds

  // Runs `action` at a time from now, in the world and on no host.
  void After(absl::Duration delay, std::function<void()> action);

  // Runs until `done`, or until `limit` has passed: then false.
  bool RunUntil(const std::function<bool()>& done,
                absl::Duration limit = absl::Minutes(5));
  // Until every client has ended, and every core that lives is idle, a router's
  // among them.
  bool RunUntilIdle(absl::Duration limit = absl::Minutes(5));
  bool Idle() const;
  // Called after every event; every host concerned has settled by then.
  std::function<void()> after_event;
  int64_t events() const { return events_; }

  // Empty, or what is wrong: wrong tokens, a leak, an account that is not zero.
  std::string Check() const;

  bool router_alive(const std::string& name = "router") const {
    return routers_.contains(name);
  }
  // Precondition: alive. What is called on it directly is followed up at the
  // router's next event.
  RouterCore& router(const std::string& name = "router") {
    return routers_.at(name)->core();
  }
  // Those that live, in order of name.
  std::vector<RouterCore*> LivingRouters();
  const BlockHasher& hasher() const { return hasher_; }
  SimWorker* worker(const std::string& name);  // null: dead
  // Those whose process runs, in order of name.
  std::vector<SimWorker*> Living();
  SimHost& host(const std::string& name) { return *hosts_.at(name); }
  const std::vector<std::unique_ptr<SimClient>>& clients() const {
    return clients_;
  }
  SimNetwork& network() { return *network_; }
  std::vector<std::string> log() const { return log_.lines(); }
  uint64_t LogHash() const { return log_.hash(); }

 private:
  // A worker's process; its timers outlive the rest.
  struct Process {
    std::unique_ptr<Timers> timers;
    std::unique_ptr<SimWorker> worker;
    std::vector<std::unique_ptr<SimRouterLink>> links;  // one a router

    void Report();
    void SetMuted(bool muted);
    std::map<int64_t, double> slow;  // factors of a step's time
    int mutes = 0;
  };
  struct DeadRouter {
    std::unique_ptr<Timers> timers;
    std::unique_ptr<SimRouter> router;
  };

  void Log(const std::string& line);
  std::string CheckClient(const SimClient& client) const;
  void AddHost(const std::string& name);
  void StartRouter(const std::string& name);
  void StartWorker(const SimWorkerOptions& options);
  bool KnowsAllWorkers() const;
  void KillRouter(const std::string& name);
  // Runs the next event.
  void Step(Instant when);
  void Begin(const Fault& fault);
  // It takes effect.
  void Note(const Fault& fault);
  void BeginOnPath(const Fault& fault);
  void BeginOnWorker(const Fault& fault, Process& process);
  void Freeze(const Fault& fault);
  void Drift(const Fault& fault);
  // Runs `undo` when the fault is over, if that process still lives.
  void WhenOver(const Fault& fault, std::function<void()> undo);

  SimClusterOptions options_;
  ManualClock clock_;
  Timers timers_;
  SeededRandom random_;
  HashSecret secret_{"simulation"};
  BlockHasher hasher_{secret_};
  SimTokenizer tokenizer_;
  SimLog log_;
  CostModel cost_;
  std::unique_ptr<PlacementPolicy> policy_;
  AnyPlacePolicy any_place_{policy_.get()};
  NullRouterProbe probe_;
  std::unique_ptr<SimNetwork> network_;
  std::map<std::string, std::unique_ptr<SimHost>> hosts_;
  const std::vector<std::string> router_names_;
  std::string entry_;  // where requests go
  std::map<std::string, std::unique_ptr<SimRouter>> routers_;  // alive
  std::map<std::string, SimWorkerOptions> worker_options_;
  std::vector<std::string> names_;
  std::map<std::string, SimTierPages> tiers_;  // stay when a worker dies
  std::map<std::string, Process> workers_;     // alive
  // Dead processes are destroyed before the next event: they may have died of
  // their own deeds.
  std::vector<Process> dead_workers_;
  std::vector<DeadRouter> dead_routers_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  int open_clients_ = 0;
  absl::Status refused_;
  Instant start_;
  std::map<FaultKind, int64_t> faults_;
  // Rates of a host's clock, by number of their fault.
  std::map<std::string, std::map<int64_t, double>> drifts_;
  int64_t next_effect_ = 1;
  int64_t events_ = 0;
  uint64_t next_incarnation_ = 1;
};

}  // namespace penstock
