#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/progress/transport_options.h"

namespace penstock {

// What the transports of one arena are made with.
struct TransportSetOptions {
  TransportOptions worker;
  std::vector<TransportKind> kinds;  // in the order of the result
  // Of TCP: numeric, and the host that peers dial (empty: the one listened on).
  std::string data_listen = "127.0.0.1:0";
  std::string data_advertised_host = {};
};

// One of each kind. UNAVAILABLE: an address is taken.
absl::StatusOr<std::vector<std::unique_ptr<KvTransport>>> MakeTransports(
    const TransportSetOptions& options);

}  // namespace penstock
