#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/peer/worker_report.h"
#include "router/core/router_core.h"
#include "tools/simulator/sim_stream.h"

namespace penstock {

// What workers tell the simulated router on their streams; a stream's end is
// its worker's loss. Owned by the router's process.
class SimRegistrar {
 public:
  explicit SimRegistrar(RouterCore* core) : core_(core) {}

  std::unique_ptr<SimStreamHandler> Accept(
      const std::shared_ptr<SimStream>& stream);

  // The router's end of a registration; what a worker sends is for it.
  class Registration;

 private:
  RouterCore* const core_;
  // The stream that speaks for each worker now.
  std::map<WorkerKey, Registration*> current_;
};

class SimRegistrar::Registration : public SimStreamHandler {
 public:
  Registration(SimRegistrar* registrar,
               const std::shared_ptr<SimStream>& stream)
      : registrar_(registrar), stream_(stream) {}

  void Register(const WorkerInfo& info);
  void Load(const WorkerLoad& load);
  void Events(const std::vector<CacheEvent>& events);
  void Snapshot(const CacheSnapshot& snapshot);
  void OnClosed(const absl::Status& status) override;

 private:
  bool IsCurrent() const;
  void Check(const absl::Status& status);
  void Answer(const CacheSync& sync);

  SimRegistrar* const registrar_;
  const std::weak_ptr<SimStream> stream_;  // its owner
  WorkerKey worker_;  // no incarnation before it has registered
};

}  // namespace penstock
