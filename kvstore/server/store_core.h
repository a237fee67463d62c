#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/clock.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/store_message.h"
#include "kvstore/core/tier_policy.h"

namespace penstock {

// The shared store of one model's pages: an arena full of them, and a tier
// behind it that gets each page as it comes. Workers write pages into blocks
// that they were granted, and have pages written into blocks that they opened;
// every page that came in was verified where it lies. Knows no gRPC. Everything
// on one loop; ports outlive it.
class StoreCore {
 public:
  using Reply = std::function<void(StoreReply)>;
  using SessionId = uint64_t;

  struct Options {
    WorkerKey self;
    TierIdentity identity;
    // Grants of one worker at a time; further offers hear that it is busy.
    int most_grants = 64;
    // A granted page that has not come, or a page that was not taken, by then.
    absl::Duration limit = absl::Seconds(10);
    // What a page costs to bring to a worker, for the choice of what stays.
    double fetch_bytes_a_second = 1e9;
  };
  struct Ports {
    ArenaPages pages;
    BlockHasher hasher;
    std::vector<KvTransport*> transports;  // best first; one at least
    KvTier* below = nullptr;               // null: memory is all
    const Clock* clock = nullptr;
  };
  StoreCore(Options options, Ports ports);

  struct Stats {
    uint64_t pages = 0;
    uint64_t blocks = 0;
    uint64_t puts = 0;
    uint64_t gets = 0;
    uint64_t hits = 0;
    uint64_t bad_pages = 0;
    uint64_t evicted = 0;
  };

  // A worker came. FAILED_PRECONDITION: its pages are not of this store's kind.
  absl::StatusOr<SessionId> Open(const StoreHello& hello, Reply reply);
  // It went: what it was writing is fenced off.
  void Close(SessionId session);

  bool IsOpen(SessionId session) const { return sessions_.contains(session); }

  // INVALID_ARGUMENT: a request that no worker of ours makes; the session is to
  // be ended. Precondition: the session is open; not a hello.
  absl::Status OnRequest(SessionId session, const StoreRequest& request);

  // Goes on with what has news; to be called after every wake and now and then.
  // True: there may be more.
  bool Tick();

  // Nothing is granted any more; what is under way goes on.
  void BeginDrain() { draining_ = true; }
  bool idle() const {
    return grants_.empty() && waiting_.empty() && posts_.empty() &&
           writing_.empty() && loading_.empty() && unsaved_.empty();
  }

  Stats stats() const;
  size_t sessions() const { return sessions_.size(); }
  BlockCounts blocks() const { return pool_.counts(); }

 private:
  struct Session {
    StoreHello hello;
    Reply reply;
    size_t transport = 0;  // the one of ours that works with it
    int grants = 0;
  };
  struct Page {
    TierKey key;
    uint64_t checksum = 0;
    BlockHold hold;
    absl::Duration recompute;
  };
  // A block that a worker may write to.
  struct Granted {
    SessionId session = 0;
    uint64_t put = 0;
    TierKey key;
    absl::Duration recompute;
    BlockHold hold;
    TransferPin pin;
    Instant deadline;
    // No write may land any more on the first so many transports.
    size_t fenced = 0;
    bool closing = false;
    std::optional<uint64_t> checksum;  // it came
  };
  // A page on its way to a worker.
  struct Sending {
    SessionId session = 0;
    StoreGet get;
    TransferPin pin;
    uint64_t checksum = 0;
    TierKey key;
    size_t tries = 0;
  };
  struct Asker {
    SessionId session = 0;
    StoreGet get;
  };
  // A page on its way up from below.
  struct Loading {
    TierKey key;
    BlockHold hold;
    TransferPin pin;
    std::vector<Asker> askers;
  };
  // A page on its way below: there until it is there, whatever memory gives up.
  struct Saving {
    TierKey key;
    uint64_t checksum = 0;
    absl::Duration recompute;
    BlockHold hold;
    TransferPin pin;
  };

  struct Waiting {
    SessionId session = 0;
    std::variant<StorePut, StoreGet> what;
  };

  absl::Status On(SessionId session, const StoreHello& hello);
  absl::Status On(SessionId session, const StoreLookup& lookup);
  absl::Status On(SessionId session, const StoreGet& get);
  absl::Status On(SessionId session, const StorePut& put);
  absl::Status On(SessionId session, const StoreGiveUp& give_up);

  void Tell(SessionId session, StoreReply reply);
  void TellGot(SessionId session, uint64_t id, absl::StatusCode code);
  bool HeldBelow(BlockHash hash);
  // Null: none of this hash is on its way below.
  const Saving* FindSaving(BlockHash hash) const;
  // A free block, if need be one whose page goes; empty: not now, all are in
  // use or soon free.
  BlockHold TakeBlock();
  // False: no block is free.
  bool Begin(SessionId session, const StorePut& put);
  bool Begin(SessionId session, const StoreGet& get);
  // Now, or when there is a block. False: too many wait.
  bool BeginOrWait(Waiting waiting);
  void BeginWaiting();
  void Admit(Page page);
  void Drop(BlockHash hash);
  void Send(Sending sending);
  void OnArrival(const PageArrival& arrival);
  void OnPosted(size_t transport, const PostCompletion& completion);
  // Fences off the grants that are to end, and takes what came by them.
  void EndGrants(Instant now);
  void Save(Saving saving);
  void OnBelow(const TierCompletion& completion);

  const Options options_;
  const Ports ports_;
  BlockPool pool_;
  TierPolicy policy_;
  absl::flat_hash_map<BlockHash, Page> pages_;
  std::map<SessionId, Session> sessions_;
  SessionId last_session_ = 0;
  uint64_t last_transfer_ = 0;
  std::map<TransferId, Granted> grants_;
  std::map<std::pair<size_t, PostId>, Sending> posts_;
  std::map<TierTicket, Loading> loading_;
  std::map<TierTicket, Saving> writing_;
  std::deque<Saving> unsaved_;
  // Pages to come, or to be brought up, for which there is no block yet.
  std::deque<Waiting> waiting_;
  // Blocks whose pages went while they were being read: soon free.
  std::set<BlockRef> freeing_;
  bool draining_ = false;
  Stats stats_;
};

}  // namespace penstock
