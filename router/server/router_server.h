#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/options.h"
#include "common/env/clock.h"
#include "router/core/http_probe.h"
#include "router/core/router_probe.h"

namespace penstock {

// What HTTP needs beside a router's own parts.
struct HttpPorts {
  HttpProbe* probe = nullptr;  // outlives the server; null: nobody listens
  std::function<std::string()> metrics_page;  // of /metrics; any thread
};

// A whole router: model text, core, services. Owned by main; its methods are
// called from the thread that made it.
class RouterServer {
 public:
  // `clock` and `probe` outlive the server; the probe is called on its loop.
  // Errors say what keeps it from starting: a bad model, a taken port.
  static absl::StatusOr<std::unique_ptr<RouterServer>> Start(
      const RouterOptions& options, const Clock& clock, RouterProbe* probe,
      HttpPorts http = {});
  // As Stop without patience.
  virtual ~RouterServer() = default;

  // Where clients and workers call, with the real port.
  virtual const std::string& address() const = 0;
  // Where HTTP clients call; empty when HTTP is not served.
  virtual std::string http_address() const = 0;

  // Not serving at once, nothing new is taken, what runs may end within
  // `patience`; then everything stops. True: nothing was cut off. `hurry` is
  // asked now and then and ends the patience early.
  virtual bool Stop(absl::Duration patience,
                    const std::function<bool()>& hurry) = 0;
};

}  // namespace penstock
