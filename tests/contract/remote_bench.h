#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/loop_thread.h"
#include "kvstore/client/remote_tier.h"
#include "kvstore/server/store_server.h"
#include "tests/contract/tier_bench.h"

namespace penstock {

struct TestStore {
  uint64_t memory_bytes = 1 << 20;
  std::string disk_directory = {};
  uint64_t disk_bytes = 1 << 20;
  std::string listen = "127.0.0.1:0";
  TransportKind kind = TransportKind::kShm;
};

// CHECKs that it starts.
std::unique_ptr<StoreServer> StartStore(const TestStore& store);

// A RemoteTier on a loop of its own, driven from the test's thread; attached
// when it is made (CHECK).
class AttachedTier : public KvTier {
 public:
  AttachedTier(TierBench& bench, const std::string& store, TransportKind kind);
  ~AttachedTier() override;

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

  RemoteTier::Stats stats();
  // Waits until the store is attached to, or is not. CHECKs that it comes.
  void AwaitAttached(bool attached);

 private:
  TierBench& bench_;
  LoopThread loop_;
  std::unique_ptr<RemoteTier> tier_;
};

}  // namespace penstock
