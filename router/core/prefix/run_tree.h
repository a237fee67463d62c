#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "router/core/prefix/block_table.h"
#include "router/core/prefix/prefix_match.h"
#include "router/core/prefix/run_arena.h"

namespace penstock {

// Which worker owns which blocks: a radix tree over chains of hashes, whose
// edges are runs of blocks with the same owners. A hash is taken to stand for
// its whole prefix, so a run is found by any of its blocks, and what follows a
// run is found by the next hash alone. A worker may own a block without owning
// the one before; a block that nobody owns is not there.
//
// Hashes that do not stand for one prefix (made up by a hostile worker) give
// wrong matches, nothing worse. Single-threaded.
class RunTree {
 public:
  struct Stored {
    size_t added = 0;   // blocks that it did not own before
    bool whole = true;  // false: the rest could not be stored
  };

  // Makes the worker an owner of the chain below `parent` (0: from a start),
  // which need not be there. A block that is known keeps its known parent.
  // Precondition: no hash is 0. O(runs) for what is known, O(blocks) for what
  // is not.
  Stored Store(WorkerSlot slot, BlockHash parent,
               absl::Span<const BlockHash> hashes);

  // False: it did not own the block. O(kMaxRun) at worst.
  bool Remove(WorkerSlot slot, BlockHash hash);
  // Removes all of the worker's blocks. O(all runs), or fewer when it ends with
  // the `most`th block.
  void Clear(WorkerSlot slot, size_t most = SIZE_MAX);
  bool Owns(WorkerSlot slot, BlockHash hash) const;

  // Adds a level for each run along the chain, from its start, and marks them
  // as asked for. O(runs * log(kMaxRun)).
  void Match(absl::Span<const BlockHash> chain,
             PrefixMatch::Levels& levels) const;

  // The worker's blocks as chains with their parents, parents first.
  // visit(parent, hashes as a span of uint64_t). O(all runs).
  template <typename Visit>
  void ForEachChain(WorkerSlot slot, Visit visit) const;

  // What the worker owns is not counted or matched by callers any more, and is
  // forgotten bit by bit: by a sweep that begins later. O(1).
  void Kill(WorkerSlot slot);
  void StartSweep();
  // Visits up to so many runs; how many it did. At the end, 0, nothing of those
  // that were killed before its start is left.
  size_t Sweep(size_t runs);
  // The slot may be used again.
  void Revive(WorkerSlot slot);

  // Forgets a run that was not asked for lately and that nothing hangs below;
  // visit(slot, blocks) for each worker that has lost so many blocks by it.
  // False: there was none at all. O(runs) at worst, O(1) over many calls.
  template <typename Visit>
  bool EvictRun(Visit visit);

  size_t blocks() const { return table_.size(); }
  size_t runs() const { return runs_.runs(); }
  // What it takes, and that without the free places of its arenas.
  size_t bytes() const;
  size_t used_bytes() const;

  // Aborts where the structure contradicts itself. For tests; O(blocks).
  void CheckStructure() const;

 private:
  // A block: its run, 0 for none, and where it is in it.
  struct Found {
    RunId run = 0;
    size_t index = 0;
    explicit operator bool() const { return run != 0; }
  };
  // Runs whose parent is not there.
  struct Orphans {
    uint32_t count = 0;
    RunId heir = 0;
  };

  Found Find(BlockHash hash) const;
  // The first of the hashes, for which the others may stand.
  Found FindAlong(absl::Span<const BlockHash> hashes) const;
  // Are the next hashes those of the run up to its end?
  bool EndsAlike(Found at, absl::Span<const BlockHash> hashes) const;
  // How much of `hashes` is what the run has from `at` on; at least 1.
  size_t CommonLength(Found at, absl::Span<const BlockHash> hashes) const;
  bool Insert(RunId id, BlockHash hash);

  size_t AddOwner(WorkerSlot slot, Found at, absl::Span<const BlockHash> hashes,
                  Stored& stored);
  size_t Extend(WorkerSlot slot, BlockHash parent,
                absl::Span<const BlockHash> hashes);
  // Where blocks below `parent` that are the worker's alone may be appended.
  RunId RunBelow(WorkerSlot slot, BlockHash parent);

  // Ids of the two parts. Precondition: 0 < at < length.
  std::pair<RunId, RunId> Split(RunId id, size_t at);
  // A run of its own for `count` blocks.
  RunId Isolate(RunId id, size_t index, size_t count);
  // The run that the block is in then.
  RunId JoinParent(RunId id);
  RunId JoinHeir(RunId id);
  bool Joinable(RunId left, RunId right) const;
  RunId Join(RunId left, RunId right);
  // Takes blocks over from one run's labels to the other's.
  void Relabel(RunId from, size_t from_index, RunId to, size_t to_index,
               size_t count);

  // Drops the run's last block, and the run with its only one.
  void PopBlock(RunId id);
  void Unlink(RunId id);
  void Detach(RunId id);
  void ReplaceHeir(BlockHash parent, RunId from, RunId to);
  // Takes killed workers out of the run. False: nobody is left, nor is the run.
  bool Cleanse(RunId id);
  bool ForgetOwner(RunId id, WorkerSlot slot);

  RunArena runs_;
  BlockTable table_;
  absl::flat_hash_map<BlockHash, Orphans> orphans_;  // by parent
  std::vector<uint64_t> killed_;                     // bits
  size_t killed_count_ = 0;
  RunId sweep_next_ = 1, sweep_end_ = 1;
  RunId clock_hand_ = 1;
};

template <typename Visit>
void RunTree::ForEachChain(WorkerSlot slot, Visit visit) const {
  std::vector<bool> visited(runs_.limit());
  std::vector<RunId> path;
  for (RunId first = 1; first < runs_.limit(); ++first) {
    // From here up to what was visited or is not the worker's, then down again.
    RunId id = first;
    while (id != 0 && !visited[id] && runs_[id].length > 0 &&
           runs_[id].owners.Contains(runs_.words(), slot)) {
      visited[id] = true;
      path.push_back(id);
      const BlockHash parent = runs_[id].parent;
      id = parent ? Find(parent).run : 0;
    }
    for (; !path.empty(); path.pop_back()) {
      const Run& run = runs_[path.back()];
      visit(run.parent, absl::MakeConstSpan(runs_.Hashes(run), run.length));
    }
  }
}

template <typename Visit>
bool RunTree::EvictRun(Visit visit) {
  if (runs_.runs() == 0) return false;
  // Two rounds find a leaf, unless hostile hashes made a ring of all.
  const size_t patience = 2 * size_t{runs_.limit()};
  for (size_t steps = 0;; ++steps) {
    if (++clock_hand_ >= runs_.limit()) clock_hand_ = 1;
    const Run& run = runs_[clock_hand_];
    if (run.length == 0) continue;
    if (steps < patience && (run.recent || run.children > 0)) {
      run.recent = false;
      continue;
    }
    run.owners.ForEach(runs_.words(), [&](WorkerSlot slot) {
      if (!BitOf(killed_, slot)) visit(slot, size_t{run.length});
    });
    Unlink(clock_hand_);
    return true;
  }
}

}  // namespace penstock
