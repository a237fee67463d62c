#pragma once

#include <map>
#include <memory>
#include <string>

#include "router/core/router_core.h"
#include "tools/simulator/sim_network.h"

namespace penstock {

class SimWorker;

// The router's legs over the simulated network, a stream for each, with the
// manners of those over gRPC. Owned by the router's process.
class SimLegs : public WorkerLegs {
 public:
  // Where the worker of a name lives now; null: nowhere.
  using FindWorker = std::function<SimWorker*(const std::string& name)>;

  SimLegs(SimNetwork* network, std::string self, FindWorker find)
      : network_(network), self_(std::move(self)), find_(std::move(find)) {}

  // Where events of legs go; set once, before the first leg.
  void set_core(RouterCore* core) { core_ = core; }

  void Start(LegId leg, LegKind kind, const WorkerKey& worker,
             LegRequest request) override;
  void Cancel(LegId leg) override;

 private:
  class RouterEnd;
  class WorkerEnd;

  SimNetwork* network_;
  const std::string self_;
  const FindWorker find_;
  RouterCore* core_ = nullptr;
  std::map<LegId, std::shared_ptr<SimStream>> streams_;
};

}  // namespace penstock
