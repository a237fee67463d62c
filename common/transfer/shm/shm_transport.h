#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transfer/socket/socket_transport.h"

namespace penstock {

// Pages between processes of one host (Linux). A source passes its arena's
// memfd, read-only, over an abstract Unix socket; then each page is a header
// and the source block's index, and the destination copies, once, from arena
// to arena. The ack is what lets the source reuse its block. Nothing of it has
// a name in a file system: kill -9 of either side leaves nothing behind.
class ShmTransport {
 public:
  struct Options {
    TransportOptions worker;
    // Name of the abstract socket, without the leading zero byte; empty: a
    // random one.
    std::string listen = {};
    SocketTransport::Limits limits = {};
  };

  // FAILED_PRECONDITION: the arena is not a memfd. INVALID_ARGUMENT: the name
  // is too long. UNAVAILABLE: it is taken.
  static absl::StatusOr<std::unique_ptr<SocketTransport>> Create(
      const Options& options);
};

}  // namespace penstock
