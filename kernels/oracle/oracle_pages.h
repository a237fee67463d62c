#pragma once

#include <cstring>

#include "absl/types/span.h"
#include "common/model/kv_layout.h"
#include "kernels/api/arena.h"

namespace penstock {

// Finds K and V of a token inside F32 pages. A block holds, for each layer, K
// and then V: [kv_heads][16 tokens][head_dim or value_dim]. Does not own the
// arena.
class OraclePages {
 public:
  OraclePages(Arena arena, const KvLayout& layout)
      : base_(arena.bytes.data()), layout_(layout) {}

  // The head_dim floats of K and the value_dim floats of V of the token at
  // `position` of a sequence with these blocks. Pages are written by copying
  // bytes, so they need no alignment beyond a float's, which Create checks.
  float* K(int layer, absl::Span<const BlockIndex> blocks, int position,
           int kv_head) const {
    return At(layer, blocks, position, kv_head, 0, layout_.head_dim);
  }
  float* V(int layer, absl::Span<const BlockIndex> blocks, int position,
           int kv_head) const {
    return At(layer, blocks, position, kv_head, layout_.key_bytes(),
              layout_.value_dim);
  }

  // Copies a whole block.
  void Copy(BlockIndex from, BlockIndex to) const {
    const uint64_t bytes = layout_.block_bytes();
    std::memcpy(base_ + to * bytes, base_ + from * bytes, bytes);
  }

 private:
  float* At(int layer, absl::Span<const BlockIndex> blocks, int position,
            int kv_head, uint64_t start, int dim) const {
    const uint64_t block = blocks[position / kBlockTokens];
    const uint64_t slot =
        (uint64_t{1} * kv_head * kBlockTokens + position % kBlockTokens) * dim;
    return reinterpret_cast<float*>(base_ + block * layout_.block_bytes() +
                                    layer * layout_.layer_bytes() + start) +
           slot;
  }

  uint8_t* base_;
  KvLayout layout_;
};

}  // namespace penstock
