#include "common/model/kv_layout.h"

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "xxhash.h"

namespace penstock {
namespace {

// Elements of 4 bits lie in pairs, 16 apart, in blocks of this many.
constexpr int kNibbleBlock = 32;
constexpr int kScaleBytes = 2;

uint32_t ScalesBytes(const KvTypeTraits& type, int dim) {
  if (type.scale_group == 0) return 0;
  const int groups = (dim + type.scale_group - 1) / type.scale_group;
  return static_cast<uint32_t>(groups * kScaleBytes * kBlockTokens);
}

}  // namespace

absl::StatusOr<KvType> ParseKvType(absl::string_view name) {
  std::string known;
  for (const KvTypeTraits& type : kKvTypes) {
    if (type.name == name) return type.type;
    absl::StrAppend(&known, known.empty() ? "" : ", ", type.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("kv-type is \"", name, "\"; use one of ", known));
}

KvLayout KvLayout::For(const ModelSpec& spec, KvType type) {
  KvLayout layout;
  layout.layers = spec.layers;
  layout.kv_heads = spec.kv_heads;
  layout.head_dim = spec.head_dim;
  layout.value_dim = spec.value_dim;
  layout.type = type;
  return layout;
}

KvHeadLayout KvLayout::head() const {
  const KvTypeTraits& traits = Traits(type);
  const int padded = traits.bits == 4
                         ? (value_dim + kNibbleBlock - 1) & -kNibbleBlock
                         : value_dim;
  KvHeadLayout head;
  head.key_scales = uint32_t{kBlockTokens} * head_dim * traits.bits / 8;
  head.values = head.key_scales + ScalesBytes(traits, head_dim);
  head.value_scales =
      head.values + uint32_t{kBlockTokens} * padded * traits.bits / 8;
  head.bytes = head.value_scales + ScalesBytes(traits, value_dim);
  return head;
}

uint64_t KvLayout::key_bytes() const {
  return uint64_t{1} * kv_heads * head().values;
}

uint64_t KvLayout::layer_bytes() const {
  return uint64_t{1} * kv_heads * head().bytes;
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
                                    Traits(type).code,
                                    static_cast<uint32_t>(arrangement)};
  return LayoutId(XXH3_64bits(fields.data(), sizeof(fields)));
}

}  // namespace penstock
