#pragma once

#include "common/rpc/server.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"

namespace penstock {

// The worker's side of a LegLink: the method of the gRPC stream that carries a
// router's legs. Each leg is a call of `methods` with a stream of its own, that
// takes encoded LegEvents; Close ends the leg with a status. What is sent
// during one round of the loop leaves in one message.
StreamMethod ServeLegs(WorkerMethods methods, std::shared_ptr<Inbox> loop);

}  // namespace penstock
