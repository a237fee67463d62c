#pragma once

#include <memory>
#include <string>

#include "common/rpc/stream.h"
#include "common/worker/core/worker_core.h"

namespace penstock {

// Serves one leg: decodes the leg, starts it, and lets its
// output flow back on the stream; a router that goes away cancels it. On the
// loop only.
std::unique_ptr<StreamHandler> ServeLeg(LegKind kind, WorkerCore& core,
                                        const std::string& request,
                                        std::shared_ptr<Stream> stream);

}  // namespace penstock
