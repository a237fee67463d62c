#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/page_label.h"
#include "kvstore/core/tier_policy.h"

namespace penstock {

// KV pages in plain memory of the worker's process, outside of its arena, as
// many as a byte cap holds. Copies on the caller's thread: tens of microseconds
// a page; a completion is there when the call returns. Thread rule: as KvTier.
class MemoryTier : public KvTier {
 public:
  struct Options {
    TierWorker worker;
    uint64_t max_bytes = 0;
    // What a page's copy takes, for predictions.
    double bytes_a_second = 4e9;
  };

  struct Stats {
    uint64_t pages = 0;  // held now
    uint64_t bytes = 0;  // taken now
    uint64_t stored = 0;
    uint64_t fetched = 0;
    uint64_t bad_pages = 0;
    uint64_t evicted = 0;
  };

  // INVALID_ARGUMENT: not one page goes into max_bytes.
  static absl::StatusOr<std::unique_ptr<MemoryTier>> Create(Options options);

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override {}
  std::optional<TierCompletion> Poll() override;

  Stats stats() const;

  // For tests: the bytes of a held page; nothing for others.
  absl::Span<uint8_t> PageForTest(BlockHash hash);

 private:
  struct Page {
    PageLabel label;
    std::unique_ptr<uint8_t[]> bytes;
  };

  explicit MemoryTier(Options options);

  absl::Status Load(const TierRead& read);
  void Forget(BlockHash hash);
  void Complete(TierCompletion completion);

  const Options options_;
  const uint64_t page_bytes_;
  const absl::Duration each_;
  TierPolicy policy_;
  absl::flat_hash_map<BlockHash, Page> pages_;
  // Of pages that went, for those that come.
  std::vector<std::unique_ptr<uint8_t[]>> spare_;
  std::deque<TierCompletion> completions_;
  TierTicket last_ticket_ = 0;
  Stats stats_;
};

}  // namespace penstock
