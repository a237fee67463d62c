#pragma once

#include <deque>
#include <variant>

#include "common/peer/peer.h"

namespace penstock {

// Lets a worker that has both roles be its own peer: what it sends to itself
// comes back in order at the next Deliver; everything else goes to the network.
// Single-threaded.
class LoopbackPeers : public PeerNetwork {
 public:
  // `network` may be null: then this worker has no peers but itself.
  LoopbackPeers(WorkerKey self, PeerNetwork* network)
      : self_(std::move(self)), network_(network) {}

  void Send(const WorkerKey& peer, HandoffMessage message) override;
  void Dial(const PeerAddress& address) override;

  // Delivers what has been queued so far; false when there was nothing.
  bool Deliver(PeerListener& listener);
  bool empty() const { return events_.empty(); }

 private:
  struct Ready {};
  struct Failed {
    PeerAddress address;
  };
  WorkerKey self_;
  PeerNetwork* network_;
  std::deque<std::variant<Ready, Failed, HandoffMessage>> events_;
};

}  // namespace penstock
