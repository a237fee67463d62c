#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kvstore/core/kv_tier.h"

namespace penstock {

// Somebody else's tier, for a TierStack, which owns its own. Thread rule: as
// that tier's, which outlives this.
class BorrowedTier : public KvTier {
 public:
  explicit BorrowedTier(KvTier* tier) : tier_(tier) {}

  TierLookup Lookup(absl::Span<const BlockHash> chain) override {
    return tier_->Lookup(chain);
  }
  TierTicket Fetch(std::vector<TierRead> reads) override {
    return tier_->Fetch(std::move(reads));
  }
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override {
    return tier_->Store(key, from, recompute);
  }
  void Cancel(TierTicket fetch) override { tier_->Cancel(fetch); }
  std::optional<TierCompletion> Poll() override { return tier_->Poll(); }

 private:
  KvTier* const tier_;
};

}  // namespace penstock
