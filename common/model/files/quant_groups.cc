#include "common/model/files/quant_groups.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "common/base/check.h"
#include "common/model/files/quant_blocks.h"

namespace penstock {
namespace {

using UnpackRowFunction = void (*)(const uint8_t* row, BlockGroups out,
                                   int64_t elements);

template <typename Block>
void UnpackRow(const uint8_t* row, BlockGroups out, int64_t elements) {
  static_assert(std::is_trivially_copyable_v<Block>);
  constexpr int kGroups = Block::kElements / Block::kGroup;
  for (int64_t at = 0; at < elements; at += Block::kElements) {
    Block block;
    std::memcpy(&block, row, sizeof(block));
    block.Unpack(out);
    row += sizeof(block);
    out.quants += Block::kElements;
    out.scales += kGroups;
    if (Block::kHasMinimum) out.minimums += kGroups;
  }
}

struct Format {
  QuantTraits traits;
  UnpackRowFunction unpack;
};

template <typename Block>
constexpr Format kFormatOf = {
    .traits = {.group_elements = Block::kGroup,
               .has_minimum = Block::kHasMinimum,
               .least = Block::kLeast,
               .greatest = Block::kGreatest},
    .unpack = UnpackRow<Block>,
};

const Format* FormatOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return nullptr;
    case TensorType::kQ4_0:
      return &kFormatOf<BlockQ4_0>;
    case TensorType::kQ4_1:
      return &kFormatOf<BlockQ4_1>;
    case TensorType::kQ5_0:
      return &kFormatOf<BlockQ5_0>;
    case TensorType::kQ5_1:
      return &kFormatOf<BlockQ5_1>;
    case TensorType::kQ8_0:
      return &kFormatOf<BlockQ8_0>;
    case TensorType::kQ2_K:
      return &kFormatOf<BlockQ2_K>;
    case TensorType::kQ3_K:
      return &kFormatOf<BlockQ3_K>;
    case TensorType::kQ4_K:
      return &kFormatOf<BlockQ4_K>;
    case TensorType::kQ5_K:
      return &kFormatOf<BlockQ5_K>;
    case TensorType::kQ6_K:
      return &kFormatOf<BlockQ6_K>;
    case TensorType::kIQ4_NL:
      return &kFormatOf<BlockIQ4_NL>;
    case TensorType::kIQ4_XS:
      return &kFormatOf<BlockIQ4_XS>;
  }
  CHECK(false) << "no such tensor type: " << static_cast<int>(type);
  return nullptr;
}

}  // namespace

const QuantTraits* QuantTraitsOf(TensorType type) {
  const Format* format = FormatOf(type);
  return format == nullptr ? nullptr : &format->traits;
}

void UnpackGroups(TensorType type, absl::Span<const uint8_t> blocks,
                  const QuantGroups& out) {
  const Format* format = FormatOf(type);
  CHECK(format != nullptr) << Traits(type).name << " has no groups";
  const TensorTypeTraits& stored = Traits(type);
  const size_t elements = out.quants.size();
  const size_t groups = elements / format->traits.group_elements;
  CHECK(elements % stored.block_elements == 0);
  CHECK(elements / stored.block_elements * stored.block_bytes == blocks.size());
  CHECK(out.scales.size() == groups);
  CHECK(out.minimums.size() == (format->traits.has_minimum ? groups : 0));
  format->unpack(blocks.data(),
                 {.quants = out.quants.data(),
                  .scales = out.scales.data(),
                  .minimums = out.minimums.data()},
                 static_cast<int64_t>(elements));
}

void UnpackGroups(const TensorView& tensor, int64_t row,
                  const QuantGroups& out) {
  CHECK(static_cast<int64_t>(out.quants.size()) == tensor.cols())
      << tensor.name;
  UnpackGroups(tensor.type, RowBytes(tensor, row), out);
}

}  // namespace penstock
