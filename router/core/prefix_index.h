#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix/prefix_match.h"

namespace penstock {

// Which worker holds which blocks, exactly: a hash table from each chained hash
// to its owners, and one of each worker's blocks; no answer depends on their
// order. A hash stands for its whole prefix, so a match is a walk
// along the chain while the worker owns each block. Single-threaded; owned by
// the worker registry.
class PrefixIndex {
 public:
  // Starts a worker without blocks in a free slot, the lowest; its events count
  // from 1. It may hold at most `max_blocks`, which bounds what a broken worker
  // can make us store.
  WorkerSlot AddWorker(size_t max_blocks);
  // Forgets all that the worker holds, at once and in bounded time: it is in no
  // match any more. The memory of what is beyond some thousand blocks comes
  // back bit by bit with later events of others, and its slot is free again
  // only then. Unknown workers are a no-op.
  void RemoveWorker(WorkerSlot worker);
  // As RemoveWorker, but its events go on from where they are.
  void ClearWorker(WorkerSlot worker);

  // Applies one event. An event at or before the last applied one, a block
  // that is already there and a removal of what is not there change nothing.
  // Errors leave the index as it is; the worker has to send more:
  //   OUT_OF_RANGE         events are missing: replay from ExpectedSequence
  //   FAILED_PRECONDITION  unknown parent, a hash of 0, or more than
  //                        max_blocks: a snapshot is needed
  //   NOT_FOUND            no such worker
  absl::Status Apply(WorkerSlot worker, const CacheEvent& event);

  // Replaces all that the worker holds; its events go on after the snapshot's
  // sequence. A snapshot is whole by definition, so parents are not checked.
  // INVALID_ARGUMENT: a hash of 0, or more than max_blocks; NOT_FOUND. Then
  // nothing changes.
  absl::Status Replace(WorkerSlot worker, const CacheSnapshot& snapshot);

  // Sequence of the next event; 0 for an unknown worker.
  uint64_t ExpectedSequence(WorkerSlot worker) const;

  // What each worker holds of the chain, from its start. Valid until the index
  // changes.
  PrefixMatch Match(absl::Span<const BlockHash> chain) const;

  // What Replace takes to bring an empty worker to the same state.
  CacheSnapshot Dump(WorkerSlot worker) const;

  // In memory: those that only removed workers held may be among them.
  size_t distinct_blocks() const { return owners_.size(); }
  // (block, worker) pairs.
  size_t memberships() const { return memberships_; }
  size_t workers() const { return workers_.size(); }
  // One more than the greatest slot that was ever given.
  WorkerSlot slot_limit() const { return slot_limit_; }

 private:
  // In order. Few own most blocks, every worker owns some.
  using Owners = absl::InlinedVector<WorkerSlot, 2>;

  struct Worker {
    size_t max_blocks = 0;
    uint64_t last_sequence = 0;
    // Each block's parent, 0 at a root, and when it was stored.
    struct Block {
      BlockHash parent;
      uint64_t age = 0;
    };
    absl::flat_hash_map<BlockHash, Block> blocks;
  };
  // A removed worker, and how far its blocks are swept.
  struct Swept {
    std::map<WorkerSlot, Worker>::node_type worker;
    absl::flat_hash_map<BlockHash, Worker::Block>::iterator next;
  };

  void Store(WorkerSlot slot, Worker& worker, const BlocksStored& stored);
  void Remove(WorkerSlot slot, Worker& worker, BlockHash hash);
  void Clear(WorkerSlot slot, Worker& worker);
  void RemoveOwner(WorkerSlot slot, BlockHash hash);
  // Gives back so many blocks of removed workers.
  void Sweep(size_t blocks);

  std::map<WorkerSlot, Worker> workers_;
  std::deque<Swept> removed_;
  absl::flat_hash_map<BlockHash, Owners> owners_;
  size_t memberships_ = 0;
  uint64_t next_age_ = 1;
  std::set<WorkerSlot> free_slots_;
  WorkerSlot slot_limit_ = 0;
};

}  // namespace penstock
