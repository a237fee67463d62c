#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "router/core/prefix/prefix_match.h"
#include "router/core/prefix/run_tree.h"

namespace penstock {

// What workers are about to hold, by the requests that were sent to them, until
// they say so themselves. Two generations: an entry is held at least for the
// lifetime and at most for twice as long, and less when there are too many.
// Single-threaded.
class PredictedBlocks {
 public:
  struct Options {
    absl::Duration lifetime = absl::Seconds(5);
    size_t max_blocks = 1 << 17;
  };

  explicit PredictedBlocks(const Options& options) : options_(options) {}

  // The worker will hold the chain.
  void Add(WorkerSlot slot, absl::Span<const BlockHash> chain, Instant now);
  // Forgets what is past its time. O(1), but for giving memory back.
  void Expire(Instant now);
  // It said that it does not hold this.
  void Remove(WorkerSlot slot, BlockHash hash);
  // It will not hold the chain.
  void Withdraw(WorkerSlot slot, absl::Span<const BlockHash> chain);
  // It will hold nothing.
  void Clear(WorkerSlot slot);

  // Adds the trees that know anything of the chain.
  void Match(absl::Span<const BlockHash> chain, PrefixMatch& match) const;

  // See RunTree.
  void Kill(WorkerSlot slot);
  void StartSweep();
  size_t Sweep(size_t runs);
  void Revive(WorkerSlot slot);

  size_t blocks() const;
  size_t bytes() const;

 private:
  void Turn();

  Options options_;
  Instant turned_;
  std::array<RunTree, 2> generations_;  // the newer first
};

}  // namespace penstock
