#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/engine/worker_context.h"
#include "common/peer/handoff_message.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// Other workers' pools as a tier: holds what a router's hint says that one of
// them has, for a while, and brings pages from there over the transports of the
// handoff. PullSource is the other end. A page is good when what landed has the
// checksum that its owner took, who compares the tokens that it has it for; it
// ends for the engine only when nothing can land in its block any more. Takes
// no pages. Single-threaded, the engine thread's; the context outlives it.
class PullTier : public KvTier {
 public:
  explicit PullTier(const WorkerContext* context);
  ~PullTier() override;

  // `source` is believed to have the blocks of `chain`. Dials it.
  void Hint(const PeerAddress& source, absl::Span<const BlockHash> chain);

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  // Never worth it: these pools fill by themselves.
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

  void OnPeerReady(const WorkerKey& peer);
  void OnPeerLost(const WorkerKey& peer);
  void OnDialFailed(const PeerAddress& address);
  void OnDone(const WorkerKey& peer, PullDone done);
  void OnArrival(const PageArrival& arrival);

  bool idle() const { return pulls_.empty() && completions_.empty(); }

 private:
  struct Hinted {
    std::string worker;
    Instant until;
  };
  // Pages that are asked for together: one transfer.
  struct Pull {
    TierTicket ticket = 0;
    int first_page = 0;  // of the ticket's
    WorkerKey owner;
    std::vector<TierRead> reads;
    std::vector<std::optional<uint64_t>> landed;  // checksums, by read
    Instant began;
    TimerId deadline = 0;
    size_t fenced = 0;  // of transports_: nothing lands by those any more
    std::optional<std::vector<uint64_t>> done;  // the owner's checksums
    std::optional<absl::Status> end;            // it ended otherwise
  };

  // Empty: nobody whom we could ask.
  std::string OwnerOf(BlockHash hash, Instant now) const;
  // Connected to; null: not, or not yet.
  const WorkerKey* Connected(const std::string& worker) const;
  void Ask(TierTicket ticket, int first_page, const WorkerKey& owner,
           std::vector<TierRead> reads);
  void End(TransferId transfer, Pull& pull, absl::Status status);
  // Ends those that are over once nothing can land any more.
  void Fence();
  void Complete(const Pull& pull);
  absl::Status Verdict(const Pull& pull, size_t read) const;

  const WorkerContext* context_;
  absl::flat_hash_map<BlockHash, Hinted> hints_;
  // By name; none yet: it is being dialled.
  std::map<std::string, std::optional<WorkerKey>> owners_;
  std::map<TransferId, Pull> pulls_;
  std::deque<TierCompletion> completions_;
  TierTicket last_ticket_ = 0;
  uint64_t last_transfer_ = 0;
  absl::Duration each_;  // measured, for a page
};

}  // namespace penstock
