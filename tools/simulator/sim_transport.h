#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/transfer/arena_pages.h"
#include "common/transfer/post_table.h"
#include "common/transfer/receive_ledger.h"
#include "tools/simulator/sim_network.h"

namespace penstock {

// Moves pages between the arenas of simulated workers: the post table and the
// receive ledger of production, with the network's latency, bandwidth and
// faults between them. Owned by the worker.
class SimTransport : public KvTransport {
 public:
  SimTransport(SimNetwork* network, WorkerKey self,
               const SimTransportOptions& options, Arena arena,
               const Clock* clock, Timers* timers);
  ~SimTransport() override;

  const TransportCaps& caps() const override { return caps_; }
  TransportAddress Describe() const override;
  absl::Status Connect(const WorkerKey& peer,
                       const TransportAddress& address) override;
  void PrepareReceive(TransferId transfer,
                      const std::vector<BlockRef>& blocks) override;
  bool Revoke(TransferId transfer) override;
  PostId Post(const WorkerKey& peer, TransferId transfer,
              std::vector<PageWrite> writes, Instant deadline) override;
  void Cancel(PostId post) override;
  void DropPeer(const WorkerKey& peer) override;
  std::optional<PostCompletion> PollCompletion() override;
  std::optional<PageArrival> PollArrival() override;

  // A write of garbage lands in a page of the transfer.
  void Spoil(TransferId transfer, BlockRef block);
  // Without a validating receiver: a write of this transfer would land.
  bool Open(TransferId transfer) const { return keys_.contains(transfer); }
  // The process dies; what is under way stays under way.
  void Die();

 private:
  class Inbound;
  class Outbound;
  struct Page;
  using PagePtr = std::shared_ptr<Page>;

  struct Peer {
    TransportAddress address;
    std::shared_ptr<SimStream> stream;
    uint64_t last_sequence = 0;
    int in_flight = 0;
  };
  // What of a post was sent and is not acknowledged.
  struct Outstanding {
    WorkerKey peer;
    int pages = 0;
    // Unchecked ones, which its end has to stop.
    std::vector<std::weak_ptr<Page>> unchecked;
  };

  // The source's half.
  void Pump(const WorkerKey& key);
  PagePtr MakePage(const Peer& peer, const PostTable::Write& write);
  void Send(const WorkerKey& key, Peer& peer, const PostTable::Write& write);
  void Dispatch(const WorkerKey& key, PagePtr page);
  void Put(const WorkerKey& key, Peer& peer, PagePtr page);
  void PutUnchecked(SimNode& to, Instant arrival, PagePtr page);
  void OpenStream(const WorkerKey& key, Peer& peer);
  void OnAck(PostId post, uint64_t bytes, const absl::Status& verdict);
  void OnStreamLost(const WorkerKey& key, const absl::Status& why);
  // Hands completions to the engine.
  void Collect();
  void OnDeadline();
  // The page's post is over, and it is still under way.
  void ReleaseLate(PagePtr page);

  // The destination's half.
  void Receive(PagePtr page, ReceiveChannel& channel,
               const std::shared_ptr<SimStream>& stream);
  // May the page land? Then a landing has begun.
  absl::Status Admit(const Page& page, ReceiveChannel& channel);
  void FinishLanding(const Page& page, Instant began,
                     const std::shared_ptr<SimStream>& stream);
  // Of the page that lies in the arena now, after a test has seen it.
  uint64_t LandedChecksum(const Page& page);
  void Report(const Page& page, std::optional<uint64_t> landed_checksum,
              Instant began, absl::Status status);
  static void Acknowledge(const Page& page, const absl::Status& verdict,
                          const std::shared_ptr<SimStream>& stream);
  void LandUnchecked(const Page& page);
  // Copies a part of the payload into the arena.
  void Write(const Page& page, size_t from, size_t to);

  bool Reaches(const Peer& peer) const;
  SimNode& node() const { return *node_; }
  // In this process, if it lives until then; never from inside the call.
  void Later(absl::Duration delay, std::function<void()> event);

  SimNetwork* network_;
  const WorkerKey self_;
  SimNode* const node_;  // its host's
  const SimTransportOptions options_;
  const Clock* clock_;
  Timers* timers_;
  const TransportCaps caps_;
  const ArenaPages pages_;

  PostTable posts_;
  PostId next_post_ = 1;
  std::map<WorkerKey, Peer> peers_;
  std::map<PostId, Outstanding> outstanding_;
  std::vector<PagePtr> held_;  // that will land late
  std::set<WorkerKey> dropped_;
  std::deque<PostCompletion> completions_;
  Instant armed_ = Instant::Infinite();
  TimerId timer_ = 0;

  ReceiveLedger ledger_;
  std::deque<PageArrival> arrivals_;
  // Without a validating receiver: transfers that may be written to; true: a
  // fence is on its way.
  std::map<TransferId, bool> keys_;
};

}  // namespace penstock
