#pragma once

#include <functional>

#include "common/engine/worker_context.h"

namespace penstock {

// The lease that the two sides of a handoff hold on each other: `renew` runs
// every so often, `expired` when the peer has been silent for too long. Owned
// by a transfer; single-threaded.
class PeerLease {
 public:
  PeerLease(const WorkerContext* context, std::function<void()> renew,
            std::function<void()> expired);
  ~PeerLease() { End(); }

  // The peer gave a sign of life.
  void Refresh();
  void StartRenewing();
  void End();

 private:
  void Watch();

  const WorkerContext* context_;
  std::function<void()> renew_;
  std::function<void()> expired_;
  Instant expires_;
  TimerId expiry_timer_ = 0;
  TimerId renew_timer_ = 0;
};

}  // namespace penstock
