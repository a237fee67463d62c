#pragma once

#include <string>

#include "common/base/id.h"
#include "common/peer/handoff_message.h"

namespace penstock {

// Where a peer listens for control; advertised, not the listening address.
struct PeerAddress {
  std::string worker;   // its name
  std::string control;  // "host:port"
};

// Control plane to other workers. Owned by the worker host; called from the
// engine thread; never blocks. Messages to one peer arrive in order or not at
// all; a lost peer is reported once through PeerListener::OnPeerLost.
class PeerNetwork {
 public:
  virtual ~PeerNetwork() = default;

  // Sends to a peer that Dial named or that sent us something before.
  // A peer that is not reachable is reported by OnPeerLost, not here.
  virtual void Send(const WorkerKey& peer, HandoffMessage message) = 0;

  // Opens (or reuses) the stream to a decode worker's control address. The
  // peer's incarnation is learned in the hello exchange. Every Dial is answered
  // once, later, by OnPeerReady (also when the stream was there already) or
  // OnDialFailed. A worker that answers under another name than the address
  // says is a failed dial.
  virtual void Dial(const PeerAddress& address) = 0;
};

// What the role logic hears from the control plane, on the engine thread.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  virtual void OnPeerReady(const WorkerKey& peer) = 0;
  virtual void OnPeerMessage(const WorkerKey& peer, HandoffMessage message) = 0;
  // The stream broke, or the peer's name came back with another incarnation:
  // nothing of the old one will arrive any more.
  virtual void OnPeerLost(const WorkerKey& peer, const absl::Status& why) = 0;
  // A Dial that never reached a peer.
  virtual void OnDialFailed(const PeerAddress& address,
                            const absl::Status& why) = 0;
};

}  // namespace penstock
