#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/rpc/stream.h"
#include "router/core/router_core.h"
#include "router/server/grpc_legs.h"

namespace penstock {

// RouterRegistry.Register: tells the core what workers say on their streams. A
// stream's end is its worker's loss. The router loop's own.
class WorkerRegistrar {
 public:
  // Both outlive the registrar and every stream.
  WorkerRegistrar(RouterCore* core, GrpcLegs* legs)
      : core_(core), legs_(legs) {}

  std::unique_ptr<StreamHandler> Accept(std::shared_ptr<Stream> stream);

 private:
  class Registration;

  RouterCore* const core_;
  GrpcLegs* const legs_;
  // The stream that speaks for each worker now.
  std::map<WorkerKey, Registration*> current_;
};

}  // namespace penstock
