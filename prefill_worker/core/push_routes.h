#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/engine/worker_context.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

// How long a post may take that has `bytes` to bring, its own and what is under
// way before it.
absl::Duration TimeToPost(const HandoffOptions& options, uint64_t bytes);

// The transports that lead from a prefill worker to one decode worker for one
// transfer, best first. One that failed goes behind the others. Owned by the
// transfer; the transports outlive it. Single-threaded.
class PushRoutes {
 public:
  // Connects to each of the peer's addresses (best first) for which there is a
  // transport here; an error when none of them is left.
  absl::Status Connect(const std::vector<KvTransport*>& transports,
                       const WorkerKey& peer,
                       const std::vector<TransportAddress>& addresses);

  // Precondition of the rest: Connect returned OK.

  KvTransport& best() const { return *routes_.front().transport; }
  // Used again only after all others.
  void Failed(const KvTransport* transport);
  void Carried(const KvTransport* transport, uint64_t bytes);
  // The one that carried most; the best one if none carried anything.
  KvTransport& busiest() const;

 private:
  struct Route {
    KvTransport* transport = nullptr;
    uint64_t bytes = 0;
  };

  std::vector<Route>::iterator Find(const KvTransport* transport);

  std::vector<Route> routes_;  // best first
};

}  // namespace penstock
