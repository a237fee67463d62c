#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/env/clock.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/page_header.h"
#include "common/transfer/post_table.h"
#include "common/transfer/progress/transport_options.h"
#include "common/transfer/socket/frames.h"
#include "common/transfer/socket/out_queue.h"
#include "common/transfer/socket/page_carrier.h"
#include "common/transfer/socket/poller.h"
#include "common/transfer/socket/unique_fd.h"

namespace penstock {

// A connection to one destination: proves who this worker is, sends the writes
// that the post table has for the peer, and feeds the acks back into it.
// Owned by the transport; progress thread only.
class OutboundLink {
 public:
  struct Context {
    TransportKind kind = TransportKind::kTcp;
    const TransportOptions* options = nullptr;
    const ArenaPages* pages = nullptr;
    PageCarrier* carrier = nullptr;
    PostTable* posts = nullptr;
    // ProgressTransport::MakeHeader.
    std::function<PageHeader(const PostTable::Write&, Incarnation destination,
                             uint64_t sequence)>
        make_header;
  };
  struct Target {
    WorkerKey peer;
    TransportAddress address;
  };

  // `context` outlives the link.
  OutboundLink(UniqueFd fd, Target target, const Nonce& nonce,
               Instant handshake_deadline, const Context& context);

  int fd() const { return fd_.get(); }
  // Infinite() once the handshake is over.
  Instant handshake_deadline() const { return handshake_deadline_; }

  // Since when there are pages that the peer says nothing to; Infinite(): there
  // are none.
  Instant silent_since() const {
    return in_flight_.empty() ? Instant::Infinite() : heard_;
  }

  // Does what can be done without waiting. An error ends the connection: it is
  // the status that the peer's posts complete with.
  absl::Status Progress(bool readable);

  // Nothing queued refers to the arena any more.
  void Detach() { out_.Detach(); }

  Poller::Interest interest() const;

 private:
  enum class State { kConnecting, kChallenge, kVerdict, kReady };

  struct InFlight {
    uint64_t sequence = 0;
    PostId post = 0;
    uint64_t bytes = 0;
  };

  absl::Status FinishConnecting();
  absl::Status Read();
  absl::Status OnFrame(absl::Span<const uint8_t> frame);
  absl::Status SendHello(const Challenge& challenge);
  absl::Status OnAck(const PageAck& ack);
  // Queues writes until enough is under way.
  void QueueWrites();

  UniqueFd fd_;
  const Target target_;
  const Nonce nonce_;
  Nonce challenge_{};
  Instant handshake_deadline_;
  const Context& context_;

  State state_ = State::kConnecting;
  OutQueue out_;
  std::array<uint8_t, 128 * kShortFrameBytes> in_;
  size_t in_bytes_ = 0;
  uint64_t last_sequence_ = 0;
  std::deque<InFlight> in_flight_;
  Instant heard_;  // of the peer, or when the first page in flight left
};

}  // namespace penstock
