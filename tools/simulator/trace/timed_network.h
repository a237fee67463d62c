#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/cost/cost_model.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

class TimedTransport;

// A network without faults between workers that live as long as the run:
// messages take a latency; pages take what the cost model says of their bytes,
// one post of a worker after the other, and have no contents. Single-threaded,
// in virtual time.
class TimedNetwork {
 public:
  TimedNetwork(const CostModel* cost, const KvLayout& layout,
               absl::Duration latency, const Clock* clock, Timers* timers)
      : cost_(cost),
        layout_(layout),
        latency_(latency),
        clock_(clock),
        timers_(timers) {}

  // The ports that a worker's core is made with; the network outlives them.
  std::unique_ptr<PeerNetwork> MakePeers(const WorkerKey& key);
  std::unique_ptr<KvTransport> MakeTransport(const WorkerKey& key);
  // Before anything names the worker. `wake` runs after each delivery.
  void Attach(const WorkerKey& key, PeerListener* listener,
              std::function<void()> wake);

  uint64_t bytes_moved() const { return bytes_moved_; }

 private:
  friend class TimedPeers;
  friend class TimedTransport;
  struct Host {
    WorkerKey key;
    PeerListener* listener = nullptr;
    TimedTransport* transport = nullptr;
    std::function<void()> wake;
  };

  Host& HostOf(const std::string& name);
  void After(absl::Duration delay, std::function<void()> then) {
    timers_->Schedule(clock_->Now() + delay, std::move(then));
  }

  const CostModel* cost_;
  KvLayout layout_;
  absl::Duration latency_;
  const Clock* clock_;
  Timers* timers_;
  std::map<std::string, Host> hosts_;
  uint64_t bytes_moved_ = 0;
};

}  // namespace penstock
