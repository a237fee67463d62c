#include "common/worker/server/rpc_peers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace penstock {

// One stream with another worker.
class RpcPeers::Link : public StreamHandler {
 public:
  // A dialled link knows whom it wants; an accepted one learns it.
  Link(RpcPeers* peers, bool dialled, PeerAddress wanted)
      : peers_(peers), dialled_(dialled), wanted_(std::move(wanted)) {}

  void Open(std::shared_ptr<Stream> stream) {
    stream_ = std::move(stream);
    Write(HandoffHello{peers_->self_});
  }

  void Write(std::variant<HandoffHello, HandoffMessage> body) {
    if (stream_ != nullptr) {
      stream_->Send(EncodeHandoffFrame({++sent_, std::move(body)}));
    }
  }

  // Nothing that still arrives counts.
  void Break(const absl::Status& why) {
    broken_ = why;
    if (stream_ != nullptr) stream_->Close(why);
  }

  // The peers are gone: what still arrives means nothing.
  void Orphan() { peers_ = nullptr; }

  void OnMessage(std::string bytes) override {
    if (peers_ == nullptr || !broken_.ok()) return;
    auto frame = DecodeHandoffFrame(bytes);
    if (!frame.ok()) {
      Break(frame.status());
      return;
    }
    if (frame->sequence <= received_) return;  // seen before
    if (frame->sequence != ++received_) {
      Break(absl::DataLossError("a handoff message is missing"));
      return;
    }
    if (auto* hello = std::get_if<HandoffHello>(&frame->body)) {
      if (key_.incarnation) return;
      key_ = hello->worker;
      peers_->OnHello(this, key_);
    } else if (key_.incarnation) {
      peers_->listener_->OnPeerMessage(
          key_, std::move(std::get<HandoffMessage>(frame->body)));
    } else {
      Break(absl::FailedPreconditionError("a hello comes first"));
    }
  }

  void OnClosed(const absl::Status& status) override {
    stream_ = nullptr;
    if (peers_ == nullptr) return;
    // Our own reason says more than how the stream then ended.
    peers_->OnLinkClosed(this, broken_.ok() ? status : broken_);
  }

  bool dialled() const { return dialled_; }
  const WorkerKey& key() const { return key_; }
  const PeerAddress& wanted() const { return wanted_; }
  int pending_dials = 1;  // answered when the hello comes or the link fails

 private:
  RpcPeers* peers_;
  const bool dialled_;
  const PeerAddress wanted_;
  std::shared_ptr<Stream> stream_;
  WorkerKey key_;  // once it said hello
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  absl::Status broken_;
};

RpcPeers::RpcPeers(WorkerKey self, std::shared_ptr<Inbox> inbox)
    : self_(std::move(self)), inbox_(std::move(inbox)) {}

RpcPeers::~RpcPeers() {
  absl::Status gone = absl::CancelledError("the worker stops");
  for (auto* links : {&dialled_, &accepted_}) {
    for (auto& [key, link] : *links) {
      link->Orphan();
      link->Break(gone);
    }
  }
  for (auto& [name, link] : dialling_) {
    link->Orphan();
    link->Break(gone);
  }
}

RpcPeers::Link* RpcPeers::Find(const WorkerKey& peer, bool dialled) const {
  const auto& links = dialled ? dialled_ : accepted_;
  auto it = links.find(peer);
  return it == links.end() ? nullptr : it->second;
}

void RpcPeers::Send(const WorkerKey& peer, HandoffMessage message) {
  Link* dialled = Find(peer, true);
  Link* accepted = Find(peer, false);
  // Two workers with both roles have a stream each way: a transfer stays on
  // the one that its prefill side dialled.
  const HandoffSender sender = SenderOf(message);
  Link* link = dialled != nullptr ? dialled : accepted;
  if (sender == HandoffSender::kPrefill) link = dialled;
  if (sender == HandoffSender::kDecode) link = accepted;
  // A lost peer was reported already; its messages have nowhere to go.
  if (link != nullptr) link->Write(std::move(message));
}

void RpcPeers::Dial(const PeerAddress& address) {
  for (auto& [key, link] : dialled_) {
    if (key.name != address.worker) continue;
    // Answered later, never from inside the call.
    inbox_->Post([this, address, key = key] {
      if (Find(key, true) != nullptr) {
        listener_->OnPeerReady(key);
      } else {
        listener_->OnDialFailed(address,
                                absl::UnavailableError("it was just lost"));
      }
    });
    return;
  }
  if (auto it = dialling_.find(address.worker); it != dialling_.end()) {
    ++it->second->pending_dials;
    return;
  }
  std::unique_ptr<RpcChannel>& channel = channels_[address.control];
  if (channel == nullptr) channel = RpcChannel::Open(address.control);
  auto handler = std::make_unique<Link>(this, /*dialled=*/true, address);
  Link* link = handler.get();
  dialling_[address.worker] = link;
  link->Open(channel->Start(kPairMethod, std::move(handler), inbox_));
}

std::unique_ptr<StreamHandler> RpcPeers::Accept(
    std::shared_ptr<Stream> stream) {
  auto link = std::make_unique<Link>(this, /*dialled=*/false, PeerAddress{});
  link->Open(std::move(stream));
  return link;
}

void RpcPeers::OnHello(Link* link, const WorkerKey& peer) {
  if (link->dialled() && peer.name != link->wanted().worker) {
    link->Break(absl::FailedPreconditionError(
        absl::StrCat(link->wanted().control, " is ", peer.name, ", not ",
                     link->wanted().worker)));
    return;
  }
  if (peer.name == self_.name) {
    link->Break(absl::FailedPreconditionError(absl::StrCat(
        "two workers are named ", peer.name, "; give each its own --name")));
    return;
  }
  auto& links = link->dialled() ? dialled_ : accepted_;
  // An earlier stream of that name is dead, whether it knows or not.
  for (auto it = links.begin(); it != links.end();) {
    auto [key, old] = *it++;
    if (key.name != peer.name || old == link) continue;
    links.erase(key);
    old->Orphan();
    old->Break(absl::AbortedError("replaced by a newer stream"));
    listener_->OnPeerLost(key, absl::UnavailableError("it came back anew"));
  }
  links[peer] = link;
  if (!link->dialled()) return;
  dialling_.erase(peer.name);
  Log(LogLevel::kInfo, "peer connected", {{"peer", peer.name}});
  for (int i = 0; i < link->pending_dials; ++i) listener_->OnPeerReady(peer);
}

void RpcPeers::OnLinkClosed(Link* link, const absl::Status& status) {
  absl::Status why =
      status.ok() ? absl::UnavailableError("it ended the stream") : status;
  // Peers that move leave no channels behind.
  if (link->dialled()) channels_.erase(link->wanted().control);
  if (link->key().incarnation && Find(link->key(), link->dialled()) == link) {
    (link->dialled() ? dialled_ : accepted_).erase(link->key());
    Log(LogLevel::kWarning, "peer lost",
        {{"peer", link->key().name}, {"why", std::string(why.message())}});
    listener_->OnPeerLost(link->key(), why);
    return;
  }
  if (!link->dialled()) return;
  auto it = dialling_.find(link->wanted().worker);
  if (it == dialling_.end() || it->second != link) return;
  dialling_.erase(it);
  for (int i = 0; i < link->pending_dials; ++i) {
    listener_->OnDialFailed(link->wanted(), why);
  }
}

}  // namespace penstock
