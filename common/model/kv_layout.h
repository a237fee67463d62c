#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/model/kv_type.h"
#include "common/model/model_spec.h"

namespace penstock {

// Tokens a KV block holds, everywhere.
inline constexpr int kBlockTokens = 16;

// Blocks that hold `positions` tokens; the last may be partly filled.
template <typename Int>
constexpr Int BlocksFor(Int positions) {
  return (positions + kBlockTokens - 1) / kBlockTokens;
}

constexpr const KvTypeTraits& Traits(KvType type) {
  return kKvTypes[static_cast<int>(type)];
}
// Names as in flags; INVALID_ARGUMENT lists the known ones.
absl::StatusOr<KvType> ParseKvType(absl::string_view name);

// A run of layers [first, last).
struct LayerRange {
  int first = 0;
  int last = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// Bytes inside a worker's arena.
struct Segment {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Byte layout of a KV block. Everything outside the backend asks Segments and
// never looks inside, so that a backend may arrange a block as it likes.
// Immutable value.
struct KvLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;   // of keys
  int value_dim = 0;  // of values
  KvType type = KvType::kF16;
  // Names the arrangement inside a block; a backend that repacks changes it.
  int arrangement = 1;

  static KvLayout For(const ModelSpec& spec, KvType type);

  // Of one KV head in one layer of a block; a backend may mix them otherwise.
  KvHeadLayout head() const;
  uint64_t key_bytes() const;    // K of one block in one layer; V follows it
  uint64_t layer_bytes() const;  // K and V of one block in one layer
  uint64_t block_bytes() const { return layer_bytes() * layers; }

  // Where the given layers of a block lie. Precondition: the index is not
  // negative and the range is within [0, layers].
  std::vector<Segment> Segments(BlockIndex block, LayerRange range) const;

  // Equal ids: pages may be exchanged byte for byte (with equal content ids).
  LayoutId id() const;
};

}  // namespace penstock
