#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace penstock {

// Index of a KV block in a worker's arena.
using BlockIndex = int32_t;

// A block at one point of its life. Freeing a block ends the generation, so a
// late write or a stale reference is recognised and refused.
struct BlockRef {
  BlockIndex index = -1;
  uint32_t generation = 0;

  friend auto operator<=>(const BlockRef&, const BlockRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const BlockRef& ref) {
    return H::combine(std::move(h), ref.index, ref.generation);
  }
};

}  // namespace penstock
