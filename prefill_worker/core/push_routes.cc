#include "prefill_worker/core/push_routes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

absl::Duration TimeToPost(const HandoffOptions& options, uint64_t bytes) {
  return options.post_timeout +
         absl::Seconds(static_cast<double>(bytes) /
                       static_cast<double>(options.min_bandwidth));
}

absl::Status PushRoutes::Connect(
    const std::vector<KvTransport*>& transports, const WorkerKey& peer,
    const std::vector<TransportAddress>& addresses) {
  absl::Status why = absl::FailedPreconditionError(
      absl::StrCat("no transport in common with ", peer.name));
  for (const TransportAddress& address : addresses) {
    auto transport = std::find_if(transports.begin(), transports.end(),
                                  [&](const KvTransport* each) {
                                    return each->caps().kind == address.kind;
                                  });
    if (transport == transports.end() || Find(*transport) != routes_.end()) {
      continue;
    }
    absl::Status connected = (*transport)->Connect(peer, address);
    if (connected.ok()) {
      routes_.push_back({*transport, 0});
    } else {
      why = connected;
    }
  }
  return routes_.empty() ? why : absl::OkStatus();
}

void PushRoutes::Failed(const KvTransport* transport) {
  auto route = Find(transport);
  CHECK(route != routes_.end());
  std::rotate(route, route + 1, routes_.end());
}

void PushRoutes::Carried(const KvTransport* transport, uint64_t bytes) {
  auto route = Find(transport);
  CHECK(route != routes_.end());
  route->bytes += bytes;
}

KvTransport& PushRoutes::busiest() const {
  return *std::max_element(
              routes_.begin(), routes_.end(),
              [](const Route& a, const Route& b) { return a.bytes < b.bytes; })
              ->transport;
}

std::vector<PushRoutes::Route>::iterator PushRoutes::Find(
    const KvTransport* transport) {
  return std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.transport == transport;
  });
}

}  // namespace penstock
