#include "kernels/cpu/weight_packer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "common/base/check.h"

namespace penstock {
namespace {

PanelFormat FormatOf(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0:
      return PanelFormat::kNibbles;
    case TensorType::kQ4_1:
      return PanelFormat::kNibblesMin;
    case TensorType::kQ8_0:
      return PanelFormat::kBytes;
    case TensorType::kF16:
      return PanelFormat::kHalf;
    case TensorType::kBF16:
      return PanelFormat::kBfloat16;
    default:
      return PanelFormat::kFloat;
  }
}

size_t BlockBytes(PanelFormat format) {
  return format == PanelFormat::kBytes ? 512 : 256;
}

// Where the parts of a stored block lie: F16 scale, maybe F16 minimum, quants.
size_t QuantOffset(PanelFormat format) {
  return format == PanelFormat::kNibblesMin ? 4 : 2;
}

const uint8_t* RowBytes(const ColumnSource& column) {
  const TensorView& tensor = *column.tensor;
  const TensorTypeTraits& traits = Traits(tensor.type);
  return tensor.data.data() + column.row *
                                  (tensor.cols() / traits.block_elements) *
                                  traits.block_bytes;
}

}  // namespace

bool TakesQuants(PanelFormat format) {
  return format == PanelFormat::kNibbles ||
         format == PanelFormat::kNibblesMin || format == PanelFormat::kBytes;
}

WeightPacker::WeightPacker(std::vector<ColumnSource> columns, int terms)
    : columns_(std::move(columns)) {
  const TensorView* first = nullptr;
  bool one_type = true;
  for (const ColumnSource& column : columns_) {
    if (column.tensor == nullptr) continue;
    if (first == nullptr) first = column.tensor;
    CHECK(column.tensor->cols() == first->cols());
    one_type &= column.tensor->type == first->type;
  }
  CHECK(first != nullptr && first->cols() % kScaleDepth == 0);
  shape_.format = one_type ? FormatOf(first->type) : PanelFormat::kFloat;
  shape_.depth = static_cast<int>(first->cols());
  shape_.panels =
      static_cast<int>((columns_.size() + kPanelColumns - 1) / kPanelColumns);
  const size_t blocks = shape_.depth / kScaleDepth;
  const size_t plane = blocks * kPanelColumns * sizeof(uint16_t);
  if (TakesQuants(shape_.format)) {
    shape_.terms = terms;
    shape_.scale_offset = blocks * BlockBytes(shape_.format);
    shape_.min_offset = shape_.scale_offset + plane;
    shape_.panel_bytes = shape_.format == PanelFormat::kNibblesMin
                             ? shape_.min_offset + plane
                             : shape_.min_offset;
  } else {
    const size_t width = shape_.format == PanelFormat::kFloat ? 4 : 2;
    shape_.panel_bytes = width * shape_.depth * kPanelColumns;
  }
  shape_.panel_bytes = (shape_.panel_bytes + 63) / 64 * 64;
}

ColumnSource WeightPacker::Column(int index) const {
  return index < static_cast<int>(columns_.size()) ? columns_[index]
                                                   : ColumnSource();
}

void WeightPacker::PackPanel(int panel, uint8_t* out) const {
  if (TakesQuants(shape_.format)) {
    PackQuants(panel, out);
  } else {
    PackNumbers(panel, out);
  }
}

void WeightPacker::PackQuants(int panel, uint8_t* out) const {
  const bool bytes = shape_.format == PanelFormat::kBytes;
  const int quads = bytes ? 8 : 4;
  const size_t block_bytes = BlockBytes(shape_.format);
  const size_t quants_at = QuantOffset(shape_.format);
  const size_t stored_bytes = quants_at + 4 * quads;
  // Signed bytes are stored with 128 added: their top bit flips.
  const uint8_t flip = bytes ? 0x80 : 0;
  std::memset(out, 0, shape_.panel_bytes);
  for (int c = 0; c < kPanelColumns; ++c) {
    const ColumnSource column = Column(panel * kPanelColumns + c);
    if (column.tensor == nullptr) continue;  // scale 0: anything times it is 0
    const uint8_t* stored = RowBytes(column);
    const int blocks = shape_.depth / kScaleDepth;
    for (int block = 0; block < blocks; ++block, stored += stored_bytes) {
      const size_t side = 2 * (size_t{kPanelColumns} * block + c);
      std::memcpy(out + shape_.scale_offset + side, stored, 2);
      if (shape_.format == PanelFormat::kNibblesMin) {
        std::memcpy(out + shape_.min_offset + side, stored + 2, 2);
      }
      for (int i = 0; i < 4 * quads; ++i) {
        out[block * block_bytes + i / 4 * 64 + c * 4 + i % 4] =
            stored[quants_at + i] ^ flip;
      }
    }
  }
}

void WeightPacker::PackNumbers(int panel, uint8_t* out) const {
  const int depth = shape_.depth;
  std::memset(out, 0, shape_.panel_bytes);
  std::vector<float> row(depth);
  for (int c = 0; c < kPanelColumns; ++c) {
    const ColumnSource column = Column(panel * kPanelColumns + c);
    if (column.tensor == nullptr) continue;
    if (shape_.format == PanelFormat::kFloat) {
      DequantizeRow(*column.tensor, column.row, absl::MakeSpan(row));
      for (int k = 0; k < depth; ++k) {
        std::memcpy(out + 4 * (size_t{kPanelColumns} * k + c), &row[k], 4);
      }
      continue;
    }
    const uint8_t* stored = RowBytes(column);
    for (int k = 0; k < depth; ++k) {
      std::memcpy(out + 2 * (size_t{kPanelColumns} * k + c), stored + 2 * k, 2);
    }
  }
}

}  // namespace penstock
