#pragma once

#include <vector>

#include "absl/status/status.h"
#include "kvstore/core/block_pool.h"

namespace penstock {

// What everybody who keeps blocks of one pool says that it keeps, to be held
// against what the pool counts. Each holder adds its own; blocks that are
// shared are added by each. Made for one comparison; single-threaded. The pool
// outlives it.
class BlockCensus {
 public:
  explicit BlockCensus(const BlockPool* pool);

  // Empty ones count for nothing.
  void Add(const BlockHold& hold);
  void Add(const std::vector<BlockHold>& holds);
  void Add(const TransferPin& pin);
  void Add(const std::vector<TransferPin>& pins);
  // A page of a transfer that waits for its fence; it has a pin too.
  void AddQuarantined(BlockRef block);
  // An entry of the prefix cache.
  void AddCached(BlockRef block);

  // INTERNAL names a block that the pool counts otherwise, or that somebody
  // keeps in an earlier life of its.
  absl::Status Compare() const;

 private:
  struct Counted {
    int references = 0;
    int transfers = 0;
    bool quarantined = false;
    bool cached = false;
  };

  Counted& Of(BlockRef block);

  const BlockPool* pool_;
  std::vector<Counted> counted_;  // by index
  int stale_ = 0;                 // of another generation
};

}  // namespace penstock
