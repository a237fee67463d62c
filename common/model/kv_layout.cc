#include "common/model/kv_layout.h"

#include <array>

#include "common/base/check.h"
#include "xxhash.h"

namespace penstock {
namespace {

uint64_t ElementBytes(KvType type) { return type == KvType::kF16 ? 2 : 4; }

}  // namespace

KvLayout KvLayout::For(const ModelSpec& spec, KvType type) {
  KvLayout layout;
  layout.layers = spec.layers;
  layout.kv_heads = spec.kv_heads;
  layout.head_dim = spec.head_dim;
  layout.value_dim = spec.value_dim;
  layout.type = type;
  return layout;
}

uint64_t KvLayout::key_bytes() const {
  return uint64_t{1} * kv_heads * head_dim * kBlockTokens * ElementBytes(type);
}

uint64_t KvLayout::layer_bytes() const {
  return key_bytes() +
         uint64_t{1} * kv_heads * value_dim * kBlockTokens * ElementBytes(type);
}

std::vector<Segment> KvLayout::Segments(BlockIndex block,
                                        LayerRange range) const {
  CHECK(block >= 0 && range.first >= 0 && range.first <= range.last &&
        range.last <= layers);
  if (range.first == range.last) return {};
  return {{block * block_bytes() + range.first * layer_bytes(),
           (range.last - range.first) * layer_bytes()}};
}

LayoutId KvLayout::id() const {
  std::array<uint32_t, 7> fields = {static_cast<uint32_t>(layers),
                                    static_cast<uint32_t>(kv_heads),
                                    static_cast<uint32_t>(head_dim),
                                    static_cast<uint32_t>(value_dim),
                                    kBlockTokens,
                                    static_cast<uint32_t>(ElementBytes(type)),
                                    static_cast<uint32_t>(arrangement)};
  return LayoutId(XXH3_64bits(fields.data(), sizeof(fields)));
}

}  // namespace penstock
