#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/worker/core/worker_core.h"
#include "tools/simulator/sim_backend.h"
#include "tools/simulator/sim_model.h"
#include "tools/simulator/sim_network.h"

namespace penstock {

struct SimWorkerOptions {
  WorkerKey key;
  WorkerRoles roles;
  int blocks = 64;
  int context_length = 4096;
  SimBackend::Options backend;
  EngineOptions engine;
  HandoffOptions handoff;
  std::vector<TransportKind> transports;  // empty: TCP alone
};

// One simulated worker process: the production WorkerCore on simulated ports.
class SimWorker {
 public:
  SimWorker(SimWorkerOptions options, SimNetwork* network, ManualClock* clock,
            Timers* timers, const BlockHasher* hasher,
            const Tokenizer* tokenizer);
  ~SimWorker();

  WorkerCore& core() { return *core_; }
  SimBackend& backend() { return *backend_; }
  const WorkerKey& key() const { return key_; }
  // Runs the core until it has nothing more to do at this instant.
  void Settle();
  // While frozen, Settle does nothing.
  void set_frozen(bool frozen) { frozen_ = frozen; }
  bool frozen() const { return frozen_; }

 private:
  WorkerKey key_;
  bool frozen_ = false;
  std::vector<uint8_t> memory_;
  std::unique_ptr<SimBackend> backend_;
  std::unique_ptr<PeerNetwork> peers_;
  std::vector<std::unique_ptr<KvTransport>> transports_;
  std::unique_ptr<WorkerCore> core_;
};

}  // namespace penstock
