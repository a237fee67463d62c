#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/peer/peer.h"
#include "common/rpc/channel.h"
#include "common/rpc/handoff_wire.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"

namespace penstock {

// The control plane between workers over gRPC: dials decode workers, answers
// prefill workers, exchanges hellos and numbers every message. Everything on
// the loop of `inbox`; owned by the WorkerServer.
class RpcPeers : public PeerNetwork {
 public:
  RpcPeers(WorkerKey self, std::shared_ptr<Inbox> inbox);
  ~RpcPeers() override;

  // Before the first event; outlives this object's last one.
  void set_listener(PeerListener* listener) { listener_ = listener; }

  void Send(const WorkerKey& peer, HandoffMessage message) override;
  void Dial(const PeerAddress& address) override;

  // HandoffService.Pair: a prefill worker dialled us.
  std::unique_ptr<StreamHandler> Accept(std::shared_ptr<Stream> stream);

 private:
  class Link;

  void OnHello(Link* link, const WorkerKey& peer);
  void OnLinkClosed(Link* link, const absl::Status& status);
  Link* Find(const WorkerKey& peer, bool dialled) const;

  const WorkerKey self_;
  const std::shared_ptr<Inbox> inbox_;
  PeerListener* listener_ = nullptr;
  // Links that said hello, by direction. The streams own the links.
  std::map<WorkerKey, Link*> dialled_;
  std::map<WorkerKey, Link*> accepted_;
  // Dials under way, by the worker's name.
  std::map<std::string, Link*> dialling_;
  std::map<std::string, std::unique_ptr<RpcChannel>> channels_;  // by address
};

}  // namespace penstock
