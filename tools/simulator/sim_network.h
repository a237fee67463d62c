#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "common/model/block_hash.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"
#include "kernels/api/arena.h"
#include "tools/simulator/sim_host.h"
#include "tools/simulator/sim_paths.h"
#include "tools/simulator/sim_stream.h"

namespace penstock {

class SimPeers;
class SimTransport;

// How one of a worker's transports behaves.
struct SimTransportOptions {
  SimTransportOptions() = default;
  // The usual ones of a kind.
  // NOLINTNEXTLINE(google-explicit-constructor)
  SimTransportOptions(TransportKind kind) : kind(kind) {}

  TransportKind kind = TransportKind::kTcp;
  // False: as with RDMA, what is under way lands whatever the receiver has
  // become meanwhile, until Revoke's fence, which takes `fence_time`.
  bool receiver_validates = true;
  int preference = 0;  // see TransportCaps
  // Pages under way to one peer at a time.
  int window = 8;
  // From a page's admission to its verification: a Revoke waits for it.
  absl::Duration landing = absl::Microseconds(20);
  absl::Duration fence_time = absl::Milliseconds(10);
};

// The address of a host: the process that runs there now, and its ports.
struct SimNode {
  std::string name;
  bool alive = false;
  uint64_t life = 0;  // counts processes
  WorkerKey key;
  Arena arena;
  PeerListener* listener = nullptr;
  std::function<void()> wake;
  std::function<void(BlockIndex)> on_write;
  SimHost* host = nullptr;
  std::string machine, process;
  SimPeers* peers = nullptr;
  std::map<TransportKind, SimTransport*> transports;
  Instant egress_free, ingress_free;  // of its link

  bool frozen() const { return host != nullptr && host->frozen(); }
  void Handle(std::function<void()> event);
  void Run(absl::FunctionRef<void()> event);
};

// A page that has left its source and not been dealt with at its destination:
// what may still land.
struct PageInFlight {
  WorkerKey to;
  TransferId transfer;
  BlockRef block;
  TransportKind kind = TransportKind::kTcp;
  // The receiver checks before it lands; else it lands, unless it was fenced.
  bool validated = true;
};

// Everything between simulated hosts: streams and pages, with latency,
// bandwidth and the faults of `paths`. Hosts come and go by name.
// Single-threaded, in virtual time.
class SimNetwork {
 public:
  struct Host {
    WorkerKey key;
    Arena arena;
    PeerListener* listener = nullptr;
    std::function<void()> wake;  // after anything was delivered
    SimHost* host = nullptr;     // null: `wake` is all, and it never freezes
    // After somebody else wrote into a block of the arena.
    std::function<void(BlockIndex)> on_write = nullptr;
    // Hosts on one machine (without a name: the common one) can use shared
    // memory, those in one process (without: none) inproc.
    std::string machine = {};
    std::string process = {};
  };

  SimNetwork(const Clock* clock, Timers* timers, const BlockHasher* hasher,
             KvLayout layout, absl::Duration latency);
  ~SimNetwork();

  // The ports that a host's WorkerCore is made with. Clock and timers are the
  // host's; all outlive the ports.
  std::unique_ptr<PeerNetwork> MakePeers(const WorkerKey& key);
  std::unique_ptr<KvTransport> MakeTransport(const WorkerKey& key,
                                             const SimTransportOptions& options,
                                             Arena arena, const Clock* clock,
                                             Timers* timers);
  void Attach(Host host);
  // The process dies: its peers see their streams break when the network lets
  // them. Unknown and dead ones are a no-op.
  void Kill(const std::string& name);
  void Kill(const WorkerKey& key) {
    if (Living(key) != nullptr) Kill(key.name);
  }

  // The world's.
  const Clock* clock() const { return clock_; }
  Timers* timers() const { return timers_; }

  // A stream from one process to whoever lives at `to`; `handler` is the
  // client's.
  std::shared_ptr<SimStream> Open(const std::string& from,
                                  const std::string& to,
                                  std::unique_ptr<SimStreamHandler> handler,
                                  SimStream::Accept accept,
                                  SimStream::Kind kind);

  SimPaths& paths() { return paths_; }
  // To be called after `paths` changed, and after a host froze or woke.
  void Refresh();

  // Bytes a second of each host's link; 0: no limit. Pages only: control
  // messages are small and go first.
  void set_bandwidth(double bytes) { bandwidth_ = bytes; }
  // What a page counts as on a link; 0: its true size.
  void set_page_bytes(uint64_t bytes) { page_bytes_ = bytes; }
  void Seed(uint64_t seed) { random_ = SeededRandom(seed); }

  // By order of sending.
  const std::map<uint64_t, PageInFlight>& pages_in_flight() const {
    return *pages_;
  }
  // It would change memory now, whoever owns the block.
  bool MayLand(const PageInFlight& page);
  // Faults that have struck so far, of those that are a matter of chance.
  const std::map<FaultKind, int64_t>& strikes() const { return strikes_; }

  // Called for each control message before it is sent: false drops it.
  std::function<bool(const WorkerKey& from, const WorkerKey& to,
                     const HandoffMessage& message)>
      filter;
  // Called for each page as it lands: may change its bytes. The checksum that
  // the sender announced was taken before.
  std::function<void(TransferId transfer, absl::Span<uint8_t> page)> on_page;
  // Called for each write of another host's page, whole or in part.
  std::function<void(const WorkerKey& to, TransferId transfer, BlockRef block)>
      on_land;
  // Called for each post before it leaves: an error is its completion.
  std::function<absl::Status(const WorkerKey& from, TransportKind kind)>
      on_post;
  // A late write of garbage: overwrites a page, and reports it as refused where
  // pages are checked.
  void SpoilPage(const WorkerKey& at, TransportKind kind, TransferId transfer,
                 BlockRef block);
  // Each line of what happened, for logs.
  std::function<void(const std::string& line)> trace;

 private:
  friend class SimStream;
  friend class SimPeers;
  friend class SimTransport;

  Instant Now() const { return clock_->Now(); }
  void At(Instant when, std::function<void()> event);
  SimNode& NodeOf(const std::string& name);
  // The node while that incarnation lives there.
  SimNode* Living(const WorkerKey& key);

  bool Blocked(const SimNode& from, const SimNode& to) const {
    return paths_.Blocked(from.name, to.name);
  }
  // Does `self` miss the keepalives of `peer`?
  bool Silent(const SimNode& self, const SimNode& peer) const {
    return (peer.alive && peer.frozen()) ||
           paths_.Noticed(self.name, peer.name);
  }
  Instant Arrival(const SimNode& from, const SimNode& to) const;
  // The same for a page; takes its share of both links.
  Instant PageArrivalTime(SimNode& from, SimNode& to, uint64_t bytes);
  // Does a fault of this kind happen now?
  bool Strikes(FaultKind kind, const SimNode& from, const SimNode& to);
  void Bury(std::unique_ptr<SimStreamHandler> handler);
  void Forget(uint64_t stream) { streams_.erase(stream); }

  const Clock* clock_;
  Timers* timers_;
  const BlockHasher* hasher_;
  const KvLayout layout_;
  const absl::Duration latency_;
  double bandwidth_ = 0;
  uint64_t page_bytes_ = 0;
  SeededRandom random_{1};
  SimPaths paths_;
  std::map<std::string, SimNode> nodes_;
  std::map<uint64_t, std::shared_ptr<SimStream>> streams_;
  uint64_t next_stream_ = 1;
  // Outlives the network: pages that are never delivered leave it late.
  std::shared_ptr<std::map<uint64_t, PageInFlight>> pages_ =
      std::make_shared<std::map<uint64_t, PageInFlight>>();
  uint64_t next_page_ = 1;
  std::map<FaultKind, int64_t> strikes_;
  // Of dead processes, whose objects may still name them.
  std::vector<std::unique_ptr<SimStreamHandler>> dead_;
};

}  // namespace penstock
