#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/rpc/leg_link.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"
#include "router/core/router_core.h"
#include "router/core/router_ports.h"

namespace penstock {

// The router core's legs over gRPC: one link for each registered worker. The
// router loop's own.
class GrpcLegs : public WorkerLegs {
 public:
  explicit GrpcLegs(std::shared_ptr<Inbox> loop) : loop_(std::move(loop)) {}

  // Where events of legs go; set once, before the first leg.
  void set_core(RouterCore* core) { core_ = core; }

  void AddWorker(const WorkerKey& worker, const std::string& address);
  // Legs to it end by themselves.
  void RemoveWorker(const WorkerKey& worker);

  void Start(LegId leg, LegKind kind, const WorkerKey& worker,
             LegRequest request) override;
  void Cancel(LegId leg) override;

 private:
  class LegStream;

  const std::shared_ptr<Inbox> loop_;
  RouterCore* core_ = nullptr;
  std::map<WorkerKey, std::unique_ptr<LegLink>> links_;
  std::map<LegId, std::shared_ptr<Stream>> streams_;
};

}  // namespace penstock
