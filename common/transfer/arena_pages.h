#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"
#include "kernels/api/arena.h"

namespace penstock {

// An arena seen as pages: which bytes some layers of a block are. Immutable
// value over memory that the worker owns; any thread.
class ArenaPages {
 public:
  // Bytes past the last whole block are never touched.
  ArenaPages(Arena arena, KvLayout layout);

  const KvLayout& layout() const { return layout_; }
  const Arena& arena() const { return arena_; }
  BlockIndex blocks() const { return blocks_; }

  // Is this a block of the arena and a non-empty range of its layers?
  bool Holds(BlockIndex block, LayerRange layers) const;

  // The bytes of a page in the order in which they travel. Precondition:
  // Holds.
  std::vector<absl::Span<uint8_t>> Page(BlockIndex block,
                                        LayerRange layers) const;

 private:
  Arena arena_;
  KvLayout layout_;
  BlockIndex blocks_;
};

// For readers of a page.
std::vector<absl::Span<const uint8_t>> ReadOnly(
    const std::vector<absl::Span<uint8_t>>& page);

}  // namespace penstock
