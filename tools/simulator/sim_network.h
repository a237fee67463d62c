#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/model/block_hash.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"
#include "kernels/api/arena.h"

namespace penstock {

// Everything between simulated hosts: control streams and page writes, with a
// latency and with faults that a test sets. Hosts come and go by name.
// Single-threaded, in virtual time.
class SimNetwork {
 public:
  struct Host {
    WorkerKey key;
    Arena arena;
    PeerListener* listener = nullptr;
    std::function<void()> wake;  // after anything was delivered
  };

  SimNetwork(Clock* clock, Timers* timers, const BlockHasher* hasher,
             KvLayout layout, absl::Duration latency)
      : clock_(clock),
        timers_(timers),
        hasher_(hasher),
        layout_(layout),
        latency_(latency) {}

  // The ports that a host's WorkerCore is made with.
  std::unique_ptr<PeerNetwork> MakePeers(const std::string& name);
  std::unique_ptr<KvTransport> MakeTransport(const WorkerKey& key,
                                             TransportKind kind);
  void Attach(Host host);
  // The process dies: its peers see their streams break after the latency, its
  // posts and theirs to it fail.
  void Kill(const std::string& name);

  // Called for each control message before it is sent: false drops it.
  std::function<bool(const WorkerKey& from, const WorkerKey& to,
                     const HandoffMessage& message)>
      filter;
  // Called for each page as it lands: may change its bytes. The checksum that
  // the sender announced was taken before.
  std::function<void(TransferId transfer, absl::Span<uint8_t> page)> on_page;
  // Called for each post before it leaves: an error is its completion.
  std::function<absl::Status(const WorkerKey& from, TransportKind kind)>
      on_post;
  // A late write of garbage: overwrites a page and reports it as refused.
  void SpoilPage(const WorkerKey& at, TransportKind kind, TransferId transfer,
                 BlockRef block);
  // Each line of what happened, for logs.
  std::function<void(const std::string& line)> trace;

 private:
  friend class SimPeers;
  friend class SimTransport;

  struct Pair {
    std::string a, b;
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };

  Host* Find(const std::string& name);
  Host* Find(const WorkerKey& key);
  // The transport of a host that lives in this incarnation.
  class SimTransport* Living(const WorkerKey& key, TransportKind kind);
  void After(absl::Duration delay, std::function<void()> then);
  void Wake(const WorkerKey& key);

  Clock* clock_;
  Timers* timers_;
  const BlockHasher* hasher_;
  KvLayout layout_;
  absl::Duration latency_;
  std::map<std::string, Host> hosts_;
  std::set<Pair> connected_;
  // A host may have one of each kind: transfers fall back from one to another.
  std::map<std::pair<std::string, TransportKind>, class SimTransport*>
      transports_;
};

}  // namespace penstock
