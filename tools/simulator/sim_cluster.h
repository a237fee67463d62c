#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/cost/cost_model.h"
#include "common/env/random.h"
#include "router/core/least_time_policy.h"
#include "router/core/router_core.h"
#include "tools/simulator/fault.h"
#include "tools/simulator/sim_client.h"
#include "tools/simulator/sim_worker.h"

namespace penstock {

struct SimClusterOptions {
  uint64_t seed = 1;
  int prefill_workers = 1;
  int decode_workers = 1;
  bool both_roles = false;  // one worker with both instead
  SimWorkerOptions worker;  // of each; key and roles are filled in
  RouterCore::Options router;
  absl::Duration latency = absl::Milliseconds(1);
  // Outlive the cluster; null: SimTokenizer, and nobody listens.
  const Tokenizer* tokenizer = nullptr;
  RouterProbe* probe = nullptr;
};

// A router and its workers: production cores, simulated ports, one thread, one
// virtual clock. Everything that happens is a line of the log; equal options
// and calls give equal logs.
class SimCluster {
 public:
  explicit SimCluster(SimClusterOptions options);
  ~SimCluster();

  // A request of `prompt` random tokens; the client lives as long as the
  // cluster. Null: refused (the reason is in refused()).
  SimClient* Submit(int prompt, int max_tokens,
                    absl::Duration timeout = absl::InfiniteDuration());
  // The same with what else `change` asks.
  SimClient* Submit(int prompt, int max_tokens,
                    const std::function<void(GenerateRequest&)>& change);
  void Cancel(const SimClient* client);
  const absl::Status& refused() const { return refused_; }
  Instant now() const { return clock_.Now(); }  // the virtual time

  void Kill(const std::string& worker);
  // Same name, new incarnation.
  void Restart(const std::string& worker);

  // Makes a fault happen at `fault.at` after the start of the run (the making
  // of this object); at once when that is past. CHECKs that its host is known.
  void Inject(const Fault& fault);
  // Faults that took effect: those on a host that was alive, say.
  int64_t faults() const { return faults_; }

  // Runs `action` at a virtual time from now.
  void After(absl::Duration delay, std::function<void()> action);

  // Runs until `done`, or until `limit` has passed: then false.
  bool RunUntil(const std::function<bool()>& done,
                absl::Duration limit = absl::Minutes(5));
  // Until every client has ended and every core is idle.
  bool RunUntilIdle(absl::Duration limit = absl::Minutes(5));
  bool Idle() const;

  // Empty, or what is wrong: wrong tokens, a leak, an account that is not zero.
  std::string Check() const;

  RouterCore& router() { return *router_; }
  const BlockHasher& hasher() const { return hasher_; }
  SimWorker* worker(const std::string& name);
  // Those whose process runs, in order of name.
  std::vector<SimWorker*> Living();
  SimNetwork& network() { return *network_; }
  const std::vector<std::string>& log() const { return log_; }
  uint64_t LogHash() const;

 private:
  class Legs;
  class Relay;

  void Log(const std::string& line);
  std::string CheckClient(const SimClient& client) const;
  void StartWorker(const std::string& name, WorkerRoles roles);
  void Heartbeat(const WorkerKey& key);
  void SendCacheEvents(SimWorker& worker);
  void Begin(const Fault& fault);

  SimClusterOptions options_;
  ManualClock clock_;
  Timers timers_;
  SeededRandom random_;
  HashSecret secret_{"simulation"};
  BlockHasher hasher_{secret_};
  SimTokenizer tokenizer_;
  CostModel cost_;
  std::unique_ptr<LeastTimePolicy> policy_;
  NullRouterProbe probe_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<Legs> legs_;
  std::unique_ptr<RouterCore> router_;
  std::map<std::string, std::unique_ptr<SimWorker>> workers_;
  std::map<std::string, WorkerRoles> roles_;
  std::map<std::string, uint64_t> cache_sent_;
  // A dead worker's objects live on: events on their way name them.
  std::vector<std::unique_ptr<SimWorker>> graveyard_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  absl::Status refused_;
  std::map<std::string, Instant> muted_;  // no heartbeats until then
  int64_t faults_ = 0;
  uint64_t next_incarnation_ = 1;
  std::vector<std::string> log_;
};

}  // namespace penstock
