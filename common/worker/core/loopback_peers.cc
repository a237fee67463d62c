#include "common/worker/core/loopback_peers.h"

#include <utility>

namespace penstock {

void LoopbackPeers::Send(const WorkerKey& peer, HandoffMessage message) {
  if (peer == self_) {
    events_.push_back(std::move(message));
  } else if (network_ != nullptr) {
    network_->Send(peer, std::move(message));
  }
}

void LoopbackPeers::Dial(const PeerAddress& address) {
  if (address.worker == self_.name) {
    events_.push_back(Ready{});
  } else if (network_ != nullptr) {
    network_->Dial(address);
  } else {
    events_.push_back(Failed{address});
  }
}

bool LoopbackPeers::Deliver(PeerListener& listener) {
  if (events_.empty()) return false;  // almost always
  std::deque<std::variant<Ready, Failed, HandoffMessage>> events =
      std::exchange(events_, {});
  for (auto& event : events) {
    if (std::holds_alternative<Ready>(event)) {
      listener.OnPeerReady(self_);
    } else if (auto* failed = std::get_if<Failed>(&event)) {
      listener.OnDialFailed(
          failed->address,
          absl::UnavailableError("this worker has no control plane"));
    } else {
      listener.OnPeerMessage(self_, std::move(std::get<HandoffMessage>(event)));
    }
  }
  return true;
}

}  // namespace penstock
