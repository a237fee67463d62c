#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/worker/core/worker_core.h"
#include "tools/simulator/sim_network.h"

namespace penstock {

class SimRegistrar;

// A simulated worker's registration with the router, with the manners of the
// one over gRPC: info first, then load and cache events each half second, and
// pauses that grow while the router is away. Owned by the worker's process.
class SimRouterLink {
 public:
  // Where the router's registrar lives now; null: nowhere.
  using FindRegistrar = std::function<SimRegistrar*()>;
  struct Ports {
    WorkerCore* core = nullptr;
    SimNetwork* network = nullptr;
    const Clock* clock = nullptr;  // these two of the worker's host
    Timers* timers = nullptr;
    FindRegistrar find;
    // The router was there, and is not any more.
    std::function<void()> on_lost = [] {};
  };

  // Starts to register.
  SimRouterLink(std::string router, WorkerInfo info, Ports ports);
  ~SimRouterLink();

  // Tells the load now.
  void Report();
  // What it would report is lost while muted.
  void set_muted(bool muted) { muted_ = muted; }

 private:
  void Connect();
  void OnWelcome();
  void OnReplay(uint64_t from);
  void OnClosed();
  void SendEvents();
  void SendSnapshot();
  void ArmHeartbeat();

  const std::string router_;
  const WorkerInfo info_;
  const Ports ports_;
  std::shared_ptr<SimStream> stream_;  // null while away
  bool welcome_ = false;
  bool muted_ = false;
  uint64_t events_sent_ = 0;
  absl::Duration pause_;
  TimerId timer_ = 0;
};

}  // namespace penstock
