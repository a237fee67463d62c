#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/runtime/inbox.h"
#include "router/core/http_probe.h"
#include "router/http/server/http_exchange.h"

namespace penstock {

struct HttpLimits {
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 4 << 20;
  int max_connections = 1024;
  // Waiting to be written of one answer in pieces.
  size_t max_queued_bytes = 1 << 20;
  // A connection that waits for its next request; clients are told a little
  // less, so that they stop using it before it goes.
  absl::Duration idle_timeout = absl::Seconds(75);
  absl::Duration header_timeout = absl::Seconds(10);  // from the first byte
  absl::Duration body_timeout = absl::Seconds(60);    // all of it
  // In which the client must take something of what waits for it.
  absl::Duration write_timeout = absl::Seconds(30);
};

// An HTTP/1.1 server: one thread that accepts, reads and writes; requests go to
// the handler's loop. A connection serves one request at a time, in order, and
// says whether it stays open. A client that leaves ends its exchange at once.
class HttpServer {
 public:
  struct Options {
    std::string address;  // "host:port"; port 0: any free one
    HttpLimits limits;
  };

  // UNAVAILABLE names an address that cannot be listened on. `probe` outlives
  // the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const Options& options, HttpHandler handler, std::shared_ptr<Inbox> loop,
      HttpProbe* probe);
  virtual ~HttpServer() = default;

  // "host:port" that is really listened on.
  virtual const std::string& address() const = 0;

  // From here on every answer says that its connection closes.
  virtual void Drain() = 0;

  // Accepts nothing more, lets answers be written for at most `grace`, then
  // closes everything. Idempotent. The handler's loop still runs.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace penstock
