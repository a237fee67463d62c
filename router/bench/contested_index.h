#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix/prefix_match.h"

namespace penstock {

// An index of block owners to be measured beside others: ours, or a plain one.
// All give the same answers to the same right events. Single-threaded.
class ContestedIndex {
 public:
  virtual ~ContestedIndex() = default;

  virtual std::string name() const = 0;
  // Slots 0 to count - 1, without blocks.
  virtual void AddWorkers(size_t count) = 0;
  // Precondition: the worker's next event, and a right one.
  virtual void Apply(WorkerSlot worker, const CacheEvent& event) = 0;
  // Sets every worker's leading blocks of the chain.
  virtual void Depths(absl::Span<const BlockHash> chain,
                      absl::Span<int> blocks) = 0;
  // The most that some worker has.
  virtual int Deepest(absl::Span<const BlockHash> chain) = 0;
  virtual int DepthOf(WorkerSlot worker, absl::Span<const BlockHash> chain) = 0;
  // It is dead: no answer counts it from now on.
  virtual void Kill(WorkerSlot worker) = 0;
  virtual size_t blocks() const = 0;
};

// The router's own.
std::unique_ptr<ContestedIndex> MakeRunIndex();
// A hash map from each block to a sorted vector of its owners: a match
// intersects them block by block.
std::unique_ptr<ContestedIndex> MakeVectorIndex();
// A hash map from each block to a hash set of its owners: a match asks each
// block for each worker that had all before it.
std::unique_ptr<ContestedIndex> MakeSetIndex();

}  // namespace penstock
