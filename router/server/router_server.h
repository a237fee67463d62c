#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/options.h"
#include "common/env/clock.h"
#include "router/core/router_probe.h"

namespace penstock {

// A whole router: model text, core, services. Owned by main; its methods are
// called from the thread that made it.
class RouterServer {
 public:
  // `clock` and `probe` outlive the server; the probe is called on its loop.
  // Errors say what keeps it from starting: a bad model, a taken port.
  static absl::StatusOr<std::unique_ptr<RouterServer>> Start(
      const RouterOptions& options, const Clock& clock, RouterProbe* probe);
  // As Stop without patience.
  virtual ~RouterServer() = default;

  // Where clients and workers call, with the real port.
  virtual const std::string& address() const = 0;

  // Not serving at once, nothing new is taken, what runs may end within
  // `patience`; then everything stops. True: nothing was cut off. `hurry` is
  // asked now and then and ends the patience early.
  virtual bool Stop(absl::Duration patience,
                    const std::function<bool()>& hurry) = 0;
};

}  // namespace penstock
