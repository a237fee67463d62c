#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "router/core/prefix_index.h"

namespace penstock {

// What the first two workers of an index are given.
inline constexpr WorkerSlot kA = 0, kB = 1;

using Holding = PrefixMatch::Holding;

// Hashes by hand: first + n is block n of a chain.
inline std::vector<BlockHash> HashChain(uint64_t first, int count) {
  std::vector<BlockHash> chain;
  for (int i = 0; i < count; ++i) chain.push_back(BlockHash(first + i));
  return chain;
}

inline std::vector<Holding> MatchOf(const PrefixIndex& index,
                                    const std::vector<BlockHash>& chain) {
  return index.Match(chain).Holdings();
}

// One worker's stream of events.
class IndexFeed {
 public:
  explicit IndexFeed(PrefixIndex& index, size_t max_blocks = 10000)
      : index_(index), slot_(index.AddWorker(max_blocks)) {}

  absl::Status Store(BlockHash parent, std::vector<BlockHash> hashes) {
    return index_.Apply(slot_, {++sequence_, BlocksStored{parent, hashes}});
  }
  absl::Status StoreRoot(std::vector<BlockHash> hashes) {
    return Store(BlockHash(), std::move(hashes));
  }
  absl::Status Remove(std::vector<BlockHash> hashes) {
    return index_.Apply(slot_, {++sequence_, BlocksRemoved{hashes}});
  }
  absl::Status Clear() {
    return index_.Apply(slot_, {++sequence_, CacheCleared{}});
  }
  // An event that is lost on its way.
  void Lose() { ++sequence_; }
  uint64_t sequence() const { return sequence_; }

 private:
  PrefixIndex& index_;
  WorkerSlot slot_;
  uint64_t sequence_ = 0;
};

}  // namespace penstock
