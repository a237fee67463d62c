#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace penstock {

// A worker's place in the prefix index: a small number, the lowest that is
// free, so that arrays and bits can be addressed with it. Once a worker is gone
// its slot stays unused until nothing in the index names it any more.
using WorkerSlot = uint32_t;

// How much of one chain of blocks each worker holds, from the chain's start.
// Read only by the thread that owns the index, until the index changes.
class PrefixMatch {
 public:
  struct Holding {
    WorkerSlot slot = 0;
    int blocks = 0;  // > 0
    friend bool operator==(const Holding&, const Holding&) = default;
  };

  PrefixMatch() = default;
  // In order of slot, none twice.
  explicit PrefixMatch(std::vector<Holding> holdings)
      : holdings_(std::move(holdings)) {}

  // Does no worker hold any of it?
  bool empty() const { return holdings_.empty(); }

  // Leading blocks that one worker holds; 0 for none and for unknown slots.
  int BlocksOf(WorkerSlot slot) const;

  // Leading blocks that some worker holds; 0 if empty.
  int deepest() const;

  // visit(slot, blocks) for each worker that holds any, in order of slot.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Holding& holding : holdings_) {
      visit(holding.slot, holding.blocks);
    }
  }

  // Sets blocks[slot] for every slot below blocks.size(), 0 included: the
  // cheapest way to all of them.
  void CopyTo(absl::Span<int> blocks) const;

  // As ForEach, for few.
  std::vector<Holding> Holdings() const;

 private:
  std::vector<Holding> holdings_;
};

}  // namespace penstock
