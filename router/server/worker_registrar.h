#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/rpc/stream.h"
#include "router/core/router_core.h"
#include "router/server/grpc_legs.h"

namespace penstock {

// RouterRegistry.Register: tells the core what workers say on their streams. A
// stream's end is its worker's loss, and only that is: gRPC's keepalives end
// the stream of a worker that is gone or frozen, while one whose engine is too
// busy to report lives on. The router loop's own.
class WorkerRegistrar {
 public:
  // All outlive the registrar and every stream.
  WorkerRegistrar(RouterCore* core, GrpcLegs* legs, const Clock* clock,
                  Timers* timers)
      : core_(core), legs_(legs), clock_(clock), timers_(timers) {}
  ~WorkerRegistrar();

  std::unique_ptr<StreamHandler> Accept(std::shared_ptr<Stream> stream);

 private:
  class Registration;

  // Tells the core, again and again, which streams live.
  void WatchStreams();

  RouterCore* const core_;
  GrpcLegs* const legs_;
  const Clock* const clock_;
  Timers* const timers_;
  TimerId timer_ = 0;
  // The stream that speaks for each worker now.
  std::map<WorkerKey, Registration*> current_;
};

}  // namespace penstock
