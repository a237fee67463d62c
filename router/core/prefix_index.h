#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix/predicted_blocks.h"
#include "router/core/prefix/prefix_match.h"
#include "router/core/prefix/run_tree.h"

namespace penstock {

// Which worker holds which blocks, exactly as their event streams say, as long
// as that fits the index: beyond it, what nobody asked for lately is forgotten
// first. A hash stands for its whole prefix, so a match is a walk along the
// chain while the worker owns each block. Single-threaded; owned by the worker
// registry.
class PrefixIndex {
 public:
  struct Options {
    // Of all memory that grows with blocks, predicted ones excepted.
    size_t max_bytes = size_t{1} << 30;
    PredictedBlocks::Options predicted;
  };

  PrefixIndex() : PrefixIndex(Options()) {}
  explicit PrefixIndex(const Options& options)
      : options_(options), predicted_(options.predicted) {}
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Starts a worker without blocks in a free slot, the lowest; its events count
  // from 1. It may hold at most `max_blocks`, which bounds what a broken worker
  // can make us store. Precondition: workers() < kMaxWorkerSlots.
  WorkerSlot AddWorker(size_t max_blocks);
  // Forgets all that the worker holds, at once: it is in no match any more. The
  // memory comes back bit by bit with later events of others, and its slot is
  // free again only then. Unknown workers are a no-op. O(1).
  void RemoveWorker(WorkerSlot worker);
  // As if it had never stored anything, but its events go on from where they
  // are. O(runs in the index).
  void ClearWorker(WorkerSlot worker);

  // Applies one event. An event at or before the last applied one, a block
  // that is already there and a removal of what is not there change nothing.
  // Blocks below one that the index had to forget are not taken in. Errors
  // leave the index as it is; the worker has to send more:
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

  // A request was sent to the worker, which will hold the chain: counts in
  // matches for a while, unless the worker has said that it holds all of it.
  // Unknown workers are a no-op.
  void Predict(WorkerSlot worker, absl::Span<const BlockHash> chain,
               Instant now);
  // It will not, as far as is known: all that is predicted of the chain for the
  // worker is forgotten. What it said is not touched.
  void Withdraw(WorkerSlot worker, absl::Span<const BlockHash> chain);
  // Forgets predictions that are past their time; Predict does it too.
  void ExpirePredictions(Instant now) { predicted_.Expire(now); }

  // What each worker holds of the chain, from its start. Valid until the index
  // changes.
  PrefixMatch Match(absl::Span<const BlockHash> chain) const;

  // What Replace takes to bring an empty worker to the same state, predictions
  // excepted.
  CacheSnapshot Dump(WorkerSlot worker) const;

  // In memory: those that only removed workers held may be among them.
  size_t distinct_blocks() const { return tree_.blocks(); }
  // (block, worker) pairs.
  size_t memberships() const { return memberships_; }
  size_t workers() const { return workers_; }
  // One more than the greatest slot that was ever given.
  WorkerSlot slot_limit() const {
    return static_cast<WorkerSlot>(slots_.size());
  }
  size_t runs() const { return tree_.runs(); }
  size_t bytes() const { return tree_.bytes(); }

  // Aborts where the structure contradicts itself. For tests; O(blocks).
  void CheckStructure() const;

 private:
  enum class SlotState : uint8_t { kFree, kAlive, kRemoved, kSwept };
  struct Slot {
    SlotState state = SlotState::kFree;
    // Some of its blocks were forgotten: it may build on what is not known.
    bool lossy = false;
    size_t max_blocks = 0;
    size_t blocks = 0;
    uint64_t last_sequence = 0;
  };

  Slot* Find(WorkerSlot worker);
  const Slot* Find(WorkerSlot worker) const;
  absl::Status CheckStored(WorkerSlot worker, const Slot& slot,
                           const CacheEvent& event,
                           const BlocksStored& stored) const;
  void Store(WorkerSlot worker, const BlocksStored& stored);
  void Remove(WorkerSlot worker, absl::Span<const BlockHash> hashes);
  void Clear(WorkerSlot worker);
  // Forgets blocks until the rest fits.
  void Fit();
  // Takes removed workers out of so many runs.
  void Sweep(size_t runs);

  Options options_;
  RunTree tree_;
  PredictedBlocks predicted_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> alive_;  // bits
  size_t workers_ = 0;
  size_t memberships_ = 0;
  size_t removed_ = 0;  // slots that wait for a sweep to begin
  bool sweeping_ = false;
};

}  // namespace penstock
