#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/worker_report.h"
#include "common/rpc/channel.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"
#include "common/worker/core/worker_core.h"

namespace penstock {

// A worker's registration with one router: tells it what the worker is, its
// load each 500 ms and at once on a change of health, and every cache event.
// Comes back with growing pauses when the router is away. On the loop only.
class RouterLink {
 public:
  struct Ports {
    WorkerCore* core = nullptr;
    const Clock* clock = nullptr;
    Timers* timers = nullptr;
    std::shared_ptr<Inbox> inbox;
    // The router was there, and is not any more.
    std::function<void()> on_lost;
  };
  // Starts to register.
  RouterLink(std::string router, WorkerInfo info, Ports ports);
  ~RouterLink();

  // Tells the load now.
  void Report();

 private:
  class Handler;

  void Connect();
  void OnWelcome();
  void OnReplay(uint64_t from);
  void OnClosed(const absl::Status& status);
  void SendEvents();
  void ArmHeartbeat();

  const std::string router_;
  const WorkerInfo info_;
  const Ports ports_;
  std::unique_ptr<RpcChannel> channel_;
  std::shared_ptr<Stream> stream_;  // null while away
  Handler* handler_ = nullptr;      // the stream's
  bool welcome_ = false;
  uint64_t events_sent_ = 0;
  absl::Duration pause_;
  TimerId timer_ = 0;
};

}  // namespace penstock
