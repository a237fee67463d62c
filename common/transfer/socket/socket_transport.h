#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/transfer/post_table.h"
#include "common/transfer/progress/progress_transport.h"
#include "common/transfer/socket/inbound_link.h"
#include "common/transfer/socket/outbound_link.h"
#include "common/transfer/socket/page_carrier.h"
#include "common/transfer/socket/poller.h"

namespace penstock {

// Pages over stream sockets: one listening socket, one connection for each
// direction and peer, one progress thread that owns them all. What differs
// between TCP and shared memory is the carrier's.
class SocketTransport final : public ProgressTransport {
 public:
  struct Limits {
    // From accept or dial to the verdict.
    absl::Duration handshake = absl::Seconds(5);
    // A peer that has acknowledged nothing for so long, though it has what to,
    // when a post expires: the connection counts as broken. The next post dials
    // again.
    absl::Duration silence = absl::Seconds(5);
    // Further sources are turned away.
    size_t inbound_links = 1024;
  };

  // INVALID_ARGUMENT: the worker's name is too long. Else what the carrier
  // says to its address.
  static absl::StatusOr<std::unique_ptr<SocketTransport>> Create(
      TransportCaps caps, const TransportOptions& options, Limits limits,
      std::unique_ptr<PageCarrier> carrier);

  // Outstanding posts never complete; connections close.
  ~SocketTransport() override;

 private:
  struct Peer {
    TransportAddress address;
    std::unique_ptr<OutboundLink> link;  // null: not connected
    uint64_t tag = 0;
  };

  SocketTransport(TransportCaps caps, const TransportOptions& options,
                  Limits limits, std::unique_ptr<PageCarrier> carrier,
                  std::unique_ptr<Poller> poller, UniqueFd listener);

  void Poke() override { poller_->Poke(); }

  // The progress thread.
  void Run();
  absl::Duration UntilNextDeadline() const;
  void Execute(Command command);
  void Dispatch(const Poller::Event& event);
  void Expire(Instant now);
  // Gives every link with something to send the chance to.
  void SendWrites();

  void AcceptAll();
  void Accept(UniqueFd fd);
  void ProgressInbound(uint64_t tag, bool readable);
  void CloseInbound(uint64_t tag, const absl::Status& why);
  void CloseInboundOf(const WorkerKey& source);

  void Dial(const WorkerKey& key, Peer& peer);
  void ProgressOutbound(const WorkerKey& key, bool readable);
  // The peer's posts complete with the status.
  void CloseOutbound(const WorkerKey& key, Peer& peer,
                     const absl::Status& status);
  void Forget(const WorkerKey& key);

  Nonce DrawNonce() const;

  const Limits limits_;
  const std::unique_ptr<PageCarrier> carrier_;
  const std::unique_ptr<Poller> poller_;
  UniqueFd listener_;

  // The progress thread's own.
  PostTable posts_;
  std::vector<uint8_t> trash_;
  InboundLink::Context inbound_context_;
  OutboundLink::Context outbound_context_;
  std::map<uint64_t, std::unique_ptr<InboundLink>> inbound_;
  std::map<WorkerKey, Peer> peers_;
  std::map<uint64_t, WorkerKey> outbound_tags_;
  uint64_t last_tag_;
  // While the process is out of descriptors nothing is accepted.
  Instant accept_again_ = Instant::Infinite();

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace penstock
