#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/peer/peer.h"
#include "tools/simulator/sim_network.h"

namespace penstock {

// The control plane between simulated workers, with the manners of the one over
// gRPC: a stream for each direction of dialling, hellos first, an older stream
// of the same name replaced by a newer one. Owned by the worker.
class SimPeers : public PeerNetwork {
 public:
  SimPeers(SimNetwork* network, WorkerKey self);

  void Send(const WorkerKey& peer, HandoffMessage message) override;
  void Dial(const PeerAddress& address) override;

 private:
  class Link;

  std::unique_ptr<SimStreamHandler> Accept(std::shared_ptr<SimStream> stream);
  void OnHello(Link* link, const WorkerKey& peer);
  void OnMessage(Link* link, const HandoffMessage& message);
  void OnLinkClosed(Link* link, const absl::Status& status);
  Link* Find(const WorkerKey& peer, bool dialled) const;
  PeerListener* listener() const { return node_->listener; }

  SimNetwork* network_;
  const WorkerKey self_;
  SimNode* const node_;  // its host's
  // Links that said hello, by direction. The streams own the links.
  std::map<WorkerKey, Link*> dialled_;
  std::map<WorkerKey, Link*> accepted_;
  // Dials under way, by the worker's name.
  std::map<std::string, Link*> dialling_;
};

}  // namespace penstock
