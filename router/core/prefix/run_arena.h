#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "router/core/prefix/block_table.h"
#include "router/core/prefix/owner_set.h"
#include "router/core/prefix/word_arena.h"

namespace penstock {

using RunId = uint32_t;  // 0 is none

// A stretch of a chain of blocks that have the same owners, each block the only
// one below the one before it.
struct alignas(64) Run {
  BlockHash parent;  // of the first block; 0: it begins a chain
  BlockHash last;    // the last block, which proves those before it
  OwnerSet owners;
  WordArena::Handle hashes = 0;
  uint16_t capacity = 0;
  uint16_t length = 0;
  uint16_t base = 0;  // label of the first block; the next ones count on
  // Somebody asked for it lately. A match leaves the index unchanged but this.
  mutable bool recent = false;
  uint32_t children = 0;  // runs whose parent is the last block
  RunId heir = 0;         // one of them, as far as is known
};

// The memory of runs. Knows nothing of how they hang together. Single-threaded.
class RunArena {
 public:
  // So that a split moves few blocks, and labels suffice.
  static constexpr size_t kMaxRun = 1024;
  static_assert(kMaxRun <= WordArena::kMaxWords && 2 * kMaxRun <= kBlockLabels);

  // Empty, without owners. References to runs stay valid.
  RunId New();
  // With its hashes and owners.
  void Free(RunId id);

  Run& operator[](RunId id) { return chunks_[id / kChunk][id % kChunk]; }
  const Run& operator[](RunId id) const {
    return chunks_[id / kChunk][id % kChunk];
  }
  // Runs are 1 to limit() - 1, free ones (of length 0) among them.
  RunId limit() const { return limit_; }

  const uint64_t* Hashes(const Run& run) const { return words_.At(run.hashes); }
  BlockHash HashAt(const Run& run, size_t index) const {
    return BlockHash(Hashes(run)[index]);
  }
  static uint16_t LabelAt(const Run& run, size_t index) {
    return (run.base + index) % kBlockLabels;
  }
  // Past its length for labels that are not the run's.
  static size_t IndexOf(const Run& run, uint16_t label) {
    return (label + kBlockLabels - run.base) % kBlockLabels;
  }

  // So that appending to this length moves nothing.
  void Reserve(Run& run, size_t length);
  // Gives back what is more than it needs.
  void Trim(Run& run);
  void Append(Run& run, BlockHash hash);
  void Append(Run& run, const uint64_t* hashes, size_t count);
  // Labels of the other blocks stay what they are.
  void Prepend(Run& run, const uint64_t* hashes, size_t count);
  void PopFront(Run& run, size_t count);
  void PopBack(Run& run, size_t count);

  WordArena& words() { return words_; }
  const WordArena& words() const { return words_; }

  size_t runs() const { return runs_; }
  size_t bytes() const {
    return words_.bytes() + chunks_.size() * kChunk * sizeof(Run);
  }
  size_t used_bytes() const {
    return words_.used_bytes() + runs_ * sizeof(Run);
  }

 private:
  static constexpr RunId kChunk = 512;

  // Into an array of so many words, at this offset.
  void MoveTo(Run& run, size_t words, size_t offset);

  WordArena words_;
  std::vector<std::unique_ptr<Run[]>> chunks_;
  RunId limit_ = 1;
  RunId free_ = 0;  // its `heir` is the next one
  size_t runs_ = 0;
};

}  // namespace penstock
