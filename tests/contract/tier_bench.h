#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/env/real/monotonic_clock.h"
#include "common/model/block_hash.h"
#include "common/transfer/arena/arena_memory.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// A worker's side of a tier: an arena, chains of tokens, and pages whose bytes
// tell whose they are. The test's thread plays the engine. It outlives the
// tiers that are made with worker().
class TierBench {
 public:
  struct Options {
    std::string cluster_key = "tiers";
    ContentId content{77};
    NumericsId numerics{5};
    int blocks = 24;
  };
  explicit TierBench(const Options& options);
  TierBench() : TierBench(Options{}) {}

  TierWorker worker();
  const Clock& clock() const { return clock_; }
  uint64_t page_bytes() const { return layout_.block_bytes(); }
  const KvLayout& layout() const { return layout_; }
  const BlockHasher& hasher() const { return hasher_; }
  Arena arena() const { return memory_->arena(); }

  // Keys of the first `blocks` blocks of the chain named by `chain`.
  std::vector<TierKey> Chain(uint64_t chain, int blocks) const;
  static std::vector<BlockHash> Hashes(const std::vector<TierKey>& keys);

  absl::Span<uint8_t> Block(BlockIndex block);
  // The page of a key: bytes that depend on its hash alone.
  void Fill(BlockIndex block, const TierKey& key);
  bool Holds(BlockIndex block, const TierKey& key);
  void Poison(BlockIndex block);

  // Waits, from wake to wake, until `done`. CHECKs that it comes.
  void AwaitWakes(const std::function<bool()>& done);

  // Waits for the next completion, from wake to wake. CHECKs that it comes.
  TierCompletion Await(KvTier& tier);

  // Offers a page, again while the tier is busy; the completion's status, or
  // ALREADY_EXISTS when it is held, FAILED_PRECONDITION when it is not worth
  // it. Uses block 0.
  absl::Status Store(KvTier& tier, const TierKey& key,
                     absl::Duration recompute = absl::Seconds(1));
  // Stores all of them; CHECKs that they were taken.
  void StoreAll(KvTier& tier, const std::vector<TierKey>& keys);
  // Fetches one page into block 1 and looks at it there: OK only if its bytes
  // are right. CHECKs that an OK of the tier's is one.
  absl::Status Fetch(KvTier& tier, const TierKey& key);
  // Lookup, again while the tier asks somebody.
  int Lookup(KvTier& tier, const std::vector<TierKey>& keys);

 private:
  bool WaitForWake(uint64_t seen);
  uint64_t wakes();

  const Options options_;
  const KvLayout layout_;
  const BlockHasher hasher_;
  const MonotonicClock clock_;
  std::unique_ptr<ArenaMemory> memory_;
  std::mutex mutex_;
  std::condition_variable woken_;
  uint64_t wakes_ = 0;  // guarded by mutex_
};

// The small layout of these tests: 2 layers, 1,024 bytes a page.
KvLayout TierTestLayout();

// A folder that is gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace penstock
