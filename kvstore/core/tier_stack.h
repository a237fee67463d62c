#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kvstore/core/kv_tier.h"

namespace penstock {

// Several tiers as one: a page is stored in each that takes it, and comes from
// the first that holds it. A page that came from a lower one is offered to the
// upper ones when the pool has no more use for it, like any other. Thread rule:
// as KvTier. Owns the tiers.
class TierStack : public KvTier {
 public:
  // The quickest first. Precondition: not empty.
  explicit TierStack(std::vector<std::unique_ptr<KvTier>> tiers);

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

 private:
  // A ticket of one of the tiers.
  using Part = std::pair<size_t, TierTicket>;
  struct Whole {
    TierTicket ticket = 0;
    std::vector<int> pages;  // of a fetch: the whole's, by the part's
  };
  struct Storing {
    int open = 0;  // tiers that have not ended
    bool stored = false;
    absl::Status status;  // of the last that failed
  };

  // The first tier that holds the first block of `chain`, and how many blocks
  // from there it holds; none: `tiers_.size()`.
  struct Holder {
    size_t tier = 0;
    TierLookup found;
    bool asking = false;  // one before it
  };
  Holder HolderOf(absl::Span<const BlockHash> chain);
  std::optional<TierCompletion> FinishStore(TierTicket ticket,
                                            const absl::Status& status);

  std::vector<std::unique_ptr<KvTier>> tiers_;
  std::map<Part, Whole> parts_;
  std::map<TierTicket, Storing> stores_;
  std::deque<TierCompletion> done_;  // pages that no tier holds
  TierTicket last_ticket_ = 0;
};

}  // namespace penstock
