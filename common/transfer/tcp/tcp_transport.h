#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/transfer/socket/socket_transport.h"

namespace penstock {

// Pages over TCP, the payload in the stream: sent from the source's arena and
// read into the destination's, with no copy of ours between.
class TcpTransport {
 public:
  struct Options {
    TransportOptions worker;
    // Numeric, "127.0.0.1:0" or "[::1]:4711"; port 0: the system chooses.
    std::string listen = "127.0.0.1:0";
    // The host that peers dial, numeric; empty: the one listened on.
    std::string advertised_host = {};
    SocketTransport::Limits limits = {};
  };

  // INVALID_ARGUMENT: an address makes no sense; UNAVAILABLE: it is taken or
  // not of this machine.
  static absl::StatusOr<std::unique_ptr<SocketTransport>> Create(
      const Options& options);
};

}  // namespace penstock
