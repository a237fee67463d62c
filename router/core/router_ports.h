#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"

namespace penstock {

using LegId = uint64_t;  // 0 is never a leg

// Router -> workers. Called on the router's loop thread; never blocks. What
// happens on a leg comes back through RouterCore::OnLeg*, never from inside
// Start or Cancel.
class WorkerLegs {
 public:
  virtual ~WorkerLegs() = default;
  // Opens a leg to the worker registered under `worker`. A worker that cannot
  // be reached ends the leg with UNAVAILABLE.
  virtual void Start(LegId leg, LegKind kind, const WorkerKey& worker,
                     LegRequest request) = 0;
  // The leg still ends once, with CANCELLED or its real outcome.
  virtual void Cancel(LegId leg) = 0;
};

// Which workers served a request, for the client and for logs.
struct PlacementSummary {
  std::string prefill;  // empty: decode prefilled by itself
  std::string decode;
};

// Router -> one client, in order: at most one OnAdmitted, frames whose token
// indices are gapless from 0, then exactly one OnFinished; afterwards the sink
// is not touched any more. OnMoved may come at any time in between. Must not
// block.
class ClientSink {
 public:
  virtual ~ClientSink() = default;
  virtual void OnAdmitted(const PlacementSummary& placement) = 0;
  // Other workers serve the request from now on.
  virtual void OnMoved(const PlacementSummary& /*placement*/) {}
  virtual void OnFrame(TokenFrame frame) = 0;
  virtual void OnFinished(const absl::Status& status) = 0;
};

}  // namespace penstock
