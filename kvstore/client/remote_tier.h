#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/rpc/channel.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/client/store_answers.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/store_message.h"

namespace penstock {

// The shared KV store as a tier: a stream for control, kept and dialled again,
// and transports of its own over the worker's arena for pages. A store that is
// away holds nothing; what was under way ends with UNAVAILABLE. Everything on
// the loop of `inbox`, the engine's.
class RemoteTier : public KvTier {
 public:
  struct Options {
    TierWorker worker;
    WorkerKey self = {};
    std::string store = {};                      // "host:port"
    std::vector<TransportKind> transports = {};  // best first
    std::string data_listen = "127.0.0.1:0";
    std::string data_advertised_host = {};
    absl::Duration limit = absl::Seconds(5);  // of each operation
    // How long an answer to a lookup is taken for true.
    absl::Duration freshness = absl::Seconds(1);
  };
  struct Ports {
    const Clock* clock = nullptr;  // thread-safe
    Timers* timers = nullptr;      // the loop's
    std::shared_ptr<Inbox> inbox;
  };
  struct Stats {
    bool attached = false;
    uint64_t stored = 0;
    uint64_t fetched = 0;
    uint64_t bad_pages = 0;
    uint64_t failures = 0;  // operations that ended with UNAVAILABLE
  };

  // At rest until the first Poll, which dials. What the transports say to
  // their addresses.
  static absl::StatusOr<std::unique_ptr<RemoteTier>> Create(Options options,
                                                            Ports ports);
  ~RemoteTier() override;

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

  Stats stats() const;

 private:
  class Handler;

  // A page that is to come. It has ended for the engine only when no write can
  // land any more.
  struct Get {
    TierTicket ticket = 0;
    int page = 0;
    TierRead what;
    Instant began, deadline;
    size_t fenced = 0;  // transports on which nothing lands any more
    std::optional<uint64_t> landed;  // the checksum of its bytes there
    std::optional<absl::Status> end;
  };
  struct Put {
    TierTicket ticket = 0;
    TierKey key;
    BlockRef from;
    Instant deadline;
    TransferId transfer;
    BlockRef into;
    size_t tries = 0;
    bool posted = false;  // the block is being read
  };

  RemoteTier(Options options, Ports ports,
             std::vector<std::unique_ptr<KvTransport>> transports);

  void Connect();
  void OnReply(StoreReply reply);
  void OnClosed(const absl::Status& status);
  void On(const StoreWelcome& welcome);
  void On(const StoreFound& found);
  void On(const StoreGot& got);
  void On(const StoreGranted& granted);

  void Send(const StoreRequest& request);
  void Wake();
  void EndGet(Get& get, absl::Status status);
  void Post(uint64_t id, Put& put);
  void EndPut(uint64_t id, const absl::Status& status);
  void OnPosted(size_t transport, const PostCompletion& completion);
  void OnArrival(const PageArrival& arrival);
  void FenceGets(Instant now);
  void EndLate(Instant now);
  void ArmDeadlines();

  const Options options_;
  const Ports ports_;
  const std::vector<std::unique_ptr<KvTransport>> transports_;
  StoreAnswers answers_;
  std::unique_ptr<RpcChannel> channel_;
  bool dialled_ = false;
  std::shared_ptr<Stream> stream_;  // null while away
  Handler* handler_ = nullptr;      // the stream's
  std::optional<StoreWelcome> store_;
  WorkerKey last_store_;
  size_t transport_ = 0;  // the one that works
  absl::Duration pause_;
  TimerId dial_timer_ = 0;
  TimerId deadline_timer_ = 0;

  uint64_t last_id_ = 0;
  TierTicket last_ticket_ = 0;
  std::map<uint64_t, Get> gets_;
  std::map<uint64_t, Put> puts_;
  std::map<std::pair<size_t, PostId>, uint64_t> posts_;  // to the put
  std::deque<TierCompletion> completions_;
  absl::Duration each_;
  Stats stats_;
};

}  // namespace penstock
