#include "tools/simulator/sim_peers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

// One side of a stream with another worker.
class SimPeers::Link : public SimStreamHandler {
 public:
  Link(SimPeers* peers, bool dialled, PeerAddress wanted)
      : peers_(peers), dialled_(dialled), wanted_(std::move(wanted)) {}

  void Open(const std::shared_ptr<SimStream>& stream) {
    stream_ = stream;
    stream->Send(side(), [hello = peers_->self_](SimStreamHandler& other) {
      static_cast<Link&>(other).Greet(hello);
    });
  }
  void Write(HandoffMessage message) {
    std::shared_ptr<SimStream> stream = stream_.lock();
    if (stream == nullptr) return;
    stream->Send(side(),
                 [message = std::move(message)](SimStreamHandler& other) {
                   Link& link = static_cast<Link&>(other);
                   if (link.peers_ != nullptr)
                     link.peers_->OnMessage(&link, message);
                 });
  }
  // Nothing that still arrives counts.
  void Drop(const absl::Status& why) {
    peers_ = nullptr;
    if (auto stream = stream_.lock()) stream->Close(side(), why);
  }

  void Greet(const WorkerKey& peer) {
    if (peers_ == nullptr) return;
    key_ = peer;
    peers_->OnHello(this, peer);
  }
  void OnClosed(const absl::Status& status) override {
    if (peers_ != nullptr) peers_->OnLinkClosed(this, status);
  }

  bool dialled() const { return dialled_; }
  SimStream::Side side() const {
    return dialled_ ? SimStream::kClient : SimStream::kServer;
  }
  const WorkerKey& key() const { return key_; }
  const PeerAddress& wanted() const { return wanted_; }
  int pending_dials = 1;  // answered when the hello comes or the link fails

 private:
  SimPeers* peers_;
  const bool dialled_;
  const PeerAddress wanted_;
  std::weak_ptr<SimStream> stream_;  // its owner
  WorkerKey key_;                    // once it said hello
};

SimPeers::SimPeers(SimNetwork* network, WorkerKey self)
    : network_(network),
      self_(std::move(self)),
      node_(&network->NodeOf(self_.name)) {
  node_->peers = this;
}

SimPeers::Link* SimPeers::Find(const WorkerKey& peer, bool dialled) const {
  const auto& links = dialled ? dialled_ : accepted_;
  auto it = links.find(peer);
  return it == links.end() ? nullptr : it->second;
}

void SimPeers::Send(const WorkerKey& peer, HandoffMessage message) {
  Link* const dialled = Find(peer, true);
  Link* const accepted = Find(peer, false);
  // A transfer stays on the stream that its prefill side dialled.
  const HandoffSender sender = SenderOf(message);
  Link* link = dialled != nullptr ? dialled : accepted;
  if (sender == HandoffSender::kPrefill) link = dialled;
  if (sender == HandoffSender::kDecode) link = accepted;
  if (link == nullptr) return;  // its loss was reported already
  if (network_->filter && !network_->filter(self_, peer, message)) return;
  link->Write(std::move(message));
}

void SimPeers::Dial(const PeerAddress& address) {
  for (auto& [key, link] : dialled_) {
    if (key.name != address.worker) continue;
    // Answered later, never from inside the call.
    SimNode& node = *node_;
    network_->At(network_->Now(),
                 [this, address, key = key, &node, life = node.life] {
                   if (!node.alive || node.life != life) return;
                   node.Handle([this, address, key] {
                     if (Find(key, true) != nullptr) {
                       listener()->OnPeerReady(key);
                     } else {
                       listener()->OnDialFailed(
                           address, absl::UnavailableError("it was just lost"));
                     }
                   });
                 });
    return;
  }
  if (auto it = dialling_.find(address.worker); it != dialling_.end()) {
    ++it->second->pending_dials;
    return;
  }
  auto handler = std::make_unique<Link>(this, /*dialled=*/true, address);
  Link* link = handler.get();
  dialling_[address.worker] = link;
  link->Open(network_->Open(
      self_.name, address.control, std::move(handler),
      [network = network_,
       to = address.control](std::shared_ptr<SimStream> stream)
          -> std::unique_ptr<SimStreamHandler> {
        SimPeers* peers = network->NodeOf(to).peers;
        if (peers == nullptr) {
          stream->Close(SimStream::kServer,
                        absl::UnimplementedError("no worker listens here"));
          return nullptr;
        }
        return peers->Accept(std::move(stream));
      },
      SimStream::Kind::kControl));
}

std::unique_ptr<SimStreamHandler> SimPeers::Accept(
    std::shared_ptr<SimStream> stream) {
  auto link = std::make_unique<Link>(this, /*dialled=*/false, PeerAddress{});
  link->Open(stream);
  return link;
}

void SimPeers::OnHello(Link* link, const WorkerKey& peer) {
  auto& links = link->dialled() ? dialled_ : accepted_;
  // An earlier stream of that name is dead, whether it knows or not.
  for (auto it = links.begin(); it != links.end();) {
    auto [key, old] = *it++;
    if (key.name != peer.name || old == link) continue;
    links.erase(key);
    old->Drop(absl::AbortedError("replaced by a newer stream"));
    listener()->OnPeerLost(key, absl::UnavailableError("it came back anew"));
  }
  links[peer] = link;
  if (!link->dialled()) return;
  dialling_.erase(peer.name);
  for (int i = 0; i < link->pending_dials; ++i) listener()->OnPeerReady(peer);
}

void SimPeers::OnMessage(Link* link, const HandoffMessage& message) {
  if (network_->trace) {
    const TransferId id = TransferOf(message);
    network_->trace(absl::StrCat(link->key().name, " > ", self_.name, " ",
                                 MessageName(message), " ", id.request.value(),
                                 "/", id.attempt.value()));
  }
  listener()->OnPeerMessage(link->key(), message);
}

void SimPeers::OnLinkClosed(Link* link, const absl::Status& status) {
  const absl::Status why =
      status.ok() ? absl::UnavailableError("it ended the stream") : status;
  if (link->key().incarnation && Find(link->key(), link->dialled()) == link) {
    (link->dialled() ? dialled_ : accepted_).erase(link->key());
    if (network_->trace) {
      network_->trace(absl::StrCat(self_.name, " lost ", link->key().name, ": ",
                                   why.message()));
    }
    listener()->OnPeerLost(link->key(), why);
    return;
  }
  if (!link->dialled()) return;
  auto it = dialling_.find(link->wanted().worker);
  if (it == dialling_.end() || it->second != link) return;
  dialling_.erase(it);
  for (int i = 0; i < link->pending_dials; ++i) {
    listener()->OnDialFailed(link->wanted(), why);
  }
}

}  // namespace penstock
