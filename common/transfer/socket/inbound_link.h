#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/env/clock.h"
#include "common/transfer/progress/page_receiver.h"
#include "common/transfer/socket/frames.h"
#include "common/transfer/socket/out_queue.h"
#include "common/transfer/socket/page_carrier.h"
#include "common/transfer/socket/poller.h"
#include "common/transfer/socket/unique_fd.h"

namespace penstock {

// A connection that a source opened: proves who it is, then takes its pages.
// A page that may land is read straight into the arena; what is refused is read
// and dropped, so that the stream stays in step. Memory is bounded whatever the
// source sends. Owned by the transport; progress thread only.
class InboundLink {
 public:
  struct Context {
    TransportKind kind = TransportKind::kTcp;
    uint64_t access_key = 0;
    PageReceiver* receiver = nullptr;
    PageCarrier* carrier = nullptr;
    // Where dropped bytes go; shared by all links of the thread.
    absl::Span<uint8_t> trash;
  };

  // Sends `nonce` as the challenge. `context` outlives the link.
  InboundLink(UniqueFd fd, const Nonce& nonce, Instant handshake_deadline,
              const Context& context);
  // A page that has not come in whole is abandoned.
  ~InboundLink();
  InboundLink(const InboundLink&) = delete;
  InboundLink& operator=(const InboundLink&) = delete;

  int fd() const { return fd_.get(); }
  // Nobody until the handshake is over.
  const std::optional<WorkerKey>& source() const { return source_; }
  // Infinite() once the handshake is over.
  Instant handshake_deadline() const { return handshake_deadline_; }

  // Does what can be done without waiting, up to a fair share. An error ends
  // the connection.
  absl::Status Progress(bool readable);

  // Gives up a landing that a Revoke waits for; the rest is dropped.
  void AbandonRevoked();

  Poller::Interest interest() const;

 private:
  // Bytes read; 0: nothing is there now.
  absl::StatusOr<size_t> ReadHelloBytes();
  absl::StatusOr<size_t> ReadPageBytes();
  absl::StatusOr<size_t> Receive(msghdr& message);

  absl::Status FinishHello();
  absl::Status Consume(size_t bytes);
  void ConsumeTargets(size_t bytes);
  absl::Status StartPage();
  absl::Status FinishPage();

  UniqueFd fd_;
  const Nonce nonce_;
  Instant handshake_deadline_;
  const Context& context_;
  OutQueue out_;

  HelloFrame hello_;
  size_t hello_bytes_ = 0;
  UniqueFd passed_;  // came with the hello
  std::optional<WorkerKey> source_;
  bool refused_ = false;  // only the verdict is left to send

  // After the handshake.
  std::unique_ptr<BodyReader> reader_;
  ReceiveChannel channel_;
  std::array<uint8_t, kPageHeaderBytes> header_bytes_;
  size_t header_have_ = 0;

  // The page whose body is coming in.
  PageHeader page_;
  Instant page_began_;
  bool in_page_ = false;
  bool landing_ = false;  // it may land: EndLanding is owed
  absl::Status verdict_;  // if not
  uint64_t body_left_ = 0;
  BodyReader::Pieces page_bytes_;
  BodyReader::Pieces targets_;
  size_t target_ = 0;  // first of targets_ that is not full
};

}  // namespace penstock
