#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace prometheus {
class Exposer;
class Registry;
}  // namespace prometheus

namespace penstock {

// The registry of one process and, when it listens, its /metrics page. Owned by
// main; thread-safe once made.
class MetricsServer {
 public:
  // `listen` is "host:port" (port 0: any free one); empty: not served.
  // `role` and `version` are those of penstock_build_info. UNAVAILABLE names an
  // address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Create(
      const std::string& listen, const std::string& role,
      const std::string& version);
  ~MetricsServer();

  prometheus::Registry& registry() { return *registry_; }
  // "host:port" that is really listened on; empty when not served.
  const std::string& address() const { return address_; }
  // The page as text, for whoever serves it elsewhere too. Any thread.
  std::string Render() const;

 private:
  MetricsServer();
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string address_;
};

}  // namespace penstock
