#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/worker/core/worker_core.h"
#include "tools/simulator/sim_backend.h"
#include "tools/simulator/sim_model.h"
#include "tools/simulator/sim_network.h"
#include "tools/simulator/sim_tier.h"

namespace penstock {

struct SimWorkerOptions {
  WorkerKey key;
  WorkerRoles roles;
  int blocks = 64;
  int context_length = 4096;
  SimBackend::Options backend;
  EngineOptions engine;
  HandoffOptions handoff;
  int cache_events = 16384;  // kept for a router that missed some
  std::vector<SimTransportOptions> transports;  // empty: TCP alone
  SimTierOptions tier = {};
  // Recount the blocks after every event: each is looked at.
  bool recount = true;
  // See SimNetwork::Host.
  std::string machine = {};
  std::string process = {};
  HandoffProbe* handoff_probe = nullptr;  // null: nobody listens
};

// One simulated worker process: the production WorkerCore on simulated ports.
// Owned by whoever simulates its host; single-threaded.
class SimWorker {
 public:
  // `clock` and `timers` are the process's own; the hardware behind the backend
  // and the network keep the world's. All outlive the worker. `host`: null when
  // whoever made the worker runs its timers. `below`: what its tier holds, if
  // it has one.
  SimWorker(SimWorkerOptions options, SimNetwork* network, const Clock* clock,
            Timers* timers, const BlockHasher* hasher,
            const Tokenizer* tokenizer, SimHost* host = nullptr,
            SimTierPages* below = nullptr);
  // Its death, if it was not killed before.
  ~SimWorker();

  WorkerCore& core() { return *core_; }
  const WorkerCore& core() const { return *core_; }
  SimBackend& backend() { return *backend_; }
  const WorkerKey& key() const { return options_.key; }
  const SimWorkerOptions& options() const { return options_; }
  // Runs the core until it has nothing more to do at this instant.
  void Settle();

  // Takes so many of its free blocks away, and gives those back.
  void TakeBlocks(int64_t id, int count);
  void GiveBlocksBack(int64_t id);
  // Everybody who holds blocks against what the pool counts.
  absl::Status CheckBlocks() const;
  int taken_blocks() const;

 private:
  void MakeTier(SimTierPages* below, Arena arena, const BlockHasher& hasher);
  // The hardware has something for the process.
  void Wake();

  const SimWorkerOptions options_;
  SimNetwork* network_;
  SimHost* host_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<SimBackend> backend_;
  std::unique_ptr<PeerNetwork> peers_;
  std::vector<std::unique_ptr<KvTransport>> transports_;
  std::unique_ptr<SimTier> tier_;  // null: none
  std::unique_ptr<WorkerCore> core_;
  std::map<int64_t, std::vector<BlockHold>> taken_;
};

}  // namespace penstock
