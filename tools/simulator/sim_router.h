#pragma once

#include <memory>
#include <string>

#include "common/env/random.h"
#include "router/core/router_core.h"
#include "tools/simulator/sim_legs.h"
#include "tools/simulator/sim_network.h"
#include "tools/simulator/sim_registrar.h"

namespace penstock {

// One simulated router process: the production RouterCore on simulated ports.
// Owned by the SimCluster until it dies; single-threaded.
class SimRouter {
 public:
  struct Ports {
    SimNetwork* network = nullptr;
    SimHost* host = nullptr;  // booted
    const BlockHasher* hasher = nullptr;
    const RoutingPolicy* policy = nullptr;
    RouterProbe* probe = nullptr;
    SimLegs::FindWorker find;
  };
  // All ports outlive it.
  SimRouter(const RouterCore::Options& options, WorkerKey self, uint64_t seed,
            const Ports& ports);
  // Its death, if it was not killed before.
  ~SimRouter();

  RouterCore& core() { return *core_; }
  SimRegistrar& registrar() { return *registrar_; }
  const WorkerKey& key() const { return self_; }

 private:
  const WorkerKey self_;
  SimNetwork* network_;
  SeededRandom random_;
  SimLegs legs_;
  std::unique_ptr<RouterCore> core_;
  std::unique_ptr<SimRegistrar> registrar_;
};

}  // namespace penstock
