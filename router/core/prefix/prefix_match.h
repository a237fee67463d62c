#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "router/core/prefix/owner_set.h"

namespace penstock {

// How much of one chain of blocks each worker holds, from the chain's start. It
// copies no owners: it looks at the index, until that changes. Read only by the
// thread that owns the index.
//
// Of several trees (what workers said, what is predicted), each holds prefixes
// by itself: the better counts. L is the number of levels, few; W the number of
// slots divided by 64.
class PrefixMatch {
 public:
  // All blocks from the level before it to this depth have these owners.
  struct Level {
    int blocks;
    OwnersView owners;
  };
  using Levels = absl::InlinedVector<Level, 8>;

  struct Holding {
    WorkerSlot slot = 0;
    int blocks = 0;  // > 0
    friend bool operator==(const Holding&, const Holding&) = default;
  };

  // No worker holds anything. Made into more by whoever knows the trees: each
  // adds its levels at the end, then ends. `alive`: who counts, as bits.
  explicit PrefixMatch(absl::Span<const uint64_t> alive = {}) : alive_(alive) {}
  Levels& levels() { return levels_; }
  void EndTree();

  // Does no worker hold any of it? O(W).
  bool empty() const;

  // Leading blocks that one worker holds; 0 for none and for unknown slots.
  // O(L).
  int BlocksOf(WorkerSlot slot) const;

  // Leading blocks that some worker holds; 0 if empty. O(L * W).
  int deepest() const;

  // visit(slot, blocks) for each worker that holds any, in order of slot.
  // O(W + L * owners).
  template <typename Visit>
  void ForEach(Visit visit) const;

  // Sets blocks[slot] for every slot below blocks.size(), 0 included: the
  // cheapest way to all of them. O(L * W + slots).
  void CopyTo(absl::Span<int> blocks) const;

  // As ForEach, for few.
  std::vector<Holding> Holdings() const;

 private:
  static constexpr size_t kTrees = 3;

  size_t words() const;
  // Living workers of these 64 slots that hold the first block.
  uint64_t FirstWord(size_t i) const;
  // Does some worker hold all of it to the end of this level?
  bool Reached(size_t tree, size_t level) const;
  // visit(owners, blocks) with those of these 64 slots that hold so many.
  template <typename Visit>
  void ForEachDepth(size_t tree, size_t i, Visit visit) const;

  Levels levels_;
  size_t trees_ = 0;
  std::array<size_t, kTrees + 1> begin_{};  // of each tree's levels
  absl::Span<const uint64_t> alive_;
};

template <typename Visit>
void PrefixMatch::ForEach(Visit visit) const {
  const size_t end = words();
  for (size_t i = 0; i < end; ++i) {
    for (uint64_t word = FirstWord(i); word != 0; word &= word - 1) {
      const auto slot =
          static_cast<WorkerSlot>(64 * i + std::countr_zero(word));
      visit(slot, BlocksOf(slot));
    }
  }
}

template <typename Visit>
void PrefixMatch::ForEachDepth(size_t tree, size_t i, Visit visit) const {
  const size_t end = begin_[tree + 1];
  size_t j = begin_[tree];
  uint64_t word = j < end ? alive_[i] & levels_[j].owners.Word(i) : 0;
  for (; word != 0; ++j) {
    const uint64_t deeper =
        j + 1 < end ? word & levels_[j + 1].owners.Word(i) : 0;
    if (const uint64_t last = word & ~deeper; last != 0) {
      visit(last, levels_[j].blocks);
    }
    word = deeper;
  }
}

}  // namespace penstock
