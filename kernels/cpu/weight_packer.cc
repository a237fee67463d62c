#include "kernels/cpu/weight_packer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/model/files/quant_groups.h"
#include "kernels/cpu/half.h"

namespace penstock {
namespace {

PanelFormat FormatOf(TensorType type, bool bfloats) {
  switch (type) {
    case TensorType::kQ4_0:
      return PanelFormat::kNibbles;
    case TensorType::kQ4_1:
      return PanelFormat::kNibblesMin;
    case TensorType::kQ5_0:
    case TensorType::kQ8_0:
    case TensorType::kIQ4_NL:
      return PanelFormat::kBytes;
    case TensorType::kQ5_1:
      return PanelFormat::kBytesMin;
    case TensorType::kQ2_K:
      return PanelFormat::kFineNibblesMin;
    case TensorType::kQ3_K:
      return PanelFormat::kFineNibbles;
    case TensorType::kQ4_K:
      return PanelFormat::kWideNibblesMin;
    case TensorType::kQ5_K:
      return PanelFormat::kWideBytesMin;
    case TensorType::kQ6_K:
      return PanelFormat::kFineBytes;
    case TensorType::kIQ4_XS:
      return PanelFormat::kWideBytes;
    case TensorType::kF16:
      return PanelFormat::kHalf;
    case TensorType::kBF16:
      return bfloats ? PanelFormat::kBfloat16 : PanelFormat::kExactBfloat16;
    case TensorType::kF32:
      return PanelFormat::kFloat;
  }
  return PanelFormat::kFloat;
}

// One row of a tensor as its groups.
struct UnpackedRow {
  explicit UnpackedRow(int depth, const PanelTraits& traits)
      : quants(depth),
        scales(depth / traits.group),
        minimums(traits.has_minimum ? scales.size() : 0) {}
  void Read(const ColumnSource& column) {
    UnpackGroups(*column.tensor, column.row,
                 {.quants = absl::MakeSpan(quants),
                  .scales = absl::MakeSpan(scales),
                  .minimums = absl::MakeSpan(minimums)});
  }

  std::vector<int8_t> quants;
  std::vector<float> scales, minimums;
};

// Scales and minimums of types with F16 scales are F16 numbers, so that the
// narrow plane holds them exactly.
void PutScale(float value, const PanelTraits& traits, uint8_t* plane,
              size_t index) {
  if (traits.element_bytes == 2) {
    const uint16_t half = FloatToHalf(value);
    std::memcpy(plane + 2 * index, &half, sizeof half);
  } else {
    std::memcpy(plane + 4 * index, &value, sizeof value);
  }
}

}  // namespace

const PanelTraits& TraitsOf(PanelFormat format) {
  return kPanelTraits[static_cast<int>(format)];
}

bool TakesQuants(PanelFormat format) { return TraitsOf(format).group != 0; }

WeightPacker::WeightPacker(std::vector<ColumnSource> columns, bool bfloats)
    : columns_(std::move(columns)) {
  const TensorView* first = nullptr;
  bool one_type = true;
  for (const ColumnSource& column : columns_) {
    if (column.tensor == nullptr) continue;
    if (first == nullptr) first = column.tensor;
    one_type &= column.tensor->type == first->type;
  }
  CHECK(first != nullptr);
  LayOut(one_type ? FormatOf(first->type, bfloats) : PanelFormat::kFloat);
}

WeightPacker WeightPacker::OfFloats(std::vector<ColumnSource> columns) {
  WeightPacker packer;
  packer.columns_ = std::move(columns);
  packer.LayOut(PanelFormat::kFloat);
  return packer;
}

void WeightPacker::LayOut(PanelFormat format) {
  const TensorView* first = nullptr;
  for (const ColumnSource& column : columns_) {
    if (column.tensor == nullptr) continue;
    if (first == nullptr) first = column.tensor;
    CHECK(column.tensor->cols() == first->cols());
  }
  CHECK(first != nullptr && first->cols() % kScaleDepth == 0);
  shape_.format = format;
  shape_.depth = static_cast<int>(first->cols());
  shape_.panels =
      static_cast<int>((columns_.size() + kPanelColumns - 1) / kPanelColumns);
  const PanelTraits& traits = TraitsOf(shape_.format);
  const size_t elements = size_t{kPanelColumns} * shape_.depth;
  if (traits.group != 0) {
    const size_t plane = elements / traits.group * traits.element_bytes;
    shape_.scale_offset = traits.packed ? elements / 2 : elements;
    shape_.min_offset = shape_.scale_offset + plane;
    shape_.panel_bytes = shape_.min_offset + (traits.has_minimum ? plane : 0);
  } else {
    shape_.panel_bytes = elements * traits.element_bytes;
  }
  shape_.panel_bytes = (shape_.panel_bytes + 63) / 64 * 64;
}

ColumnSource WeightPacker::Column(int index) const {
  return index < static_cast<int>(columns_.size()) ? columns_[index]
                                                   : ColumnSource();
}

void WeightPacker::PackPanel(int panel, uint8_t* out) const {
  std::memset(out, 0, shape_.panel_bytes);
  if (TakesQuants(shape_.format)) {
    PackQuants(panel, out);
  } else if (TraitsOf(shape_.format).element_bytes == 2) {
    PackHalves(panel, out);
  } else {
    PackFloats(panel, out);
  }
}

void WeightPacker::PackQuants(int panel, uint8_t* out) const {
  const PanelTraits& traits = TraitsOf(shape_.format);
  UnpackedRow row(shape_.depth, traits);
  for (int c = 0; c < kPanelColumns; ++c) {
    const ColumnSource column = Column(panel * kPanelColumns + c);
    if (column.tensor == nullptr) continue;  // scale 0: anything times it is 0
    row.Read(column);
    for (size_t group = 0; group < row.scales.size(); ++group) {
      const size_t at = group * kPanelColumns + c;
      PutScale(row.scales[group], traits, out + shape_.scale_offset, at);
      if (!traits.has_minimum) continue;
      PutScale(-row.minimums[group], traits, out + shape_.min_offset, at);
    }
    for (int i = 0; i < shape_.depth; ++i) {
      const int element = i % kScaleDepth;
      const int stored = row.quants[i] + traits.zero_point;
      // The upper half of a packed block lies in the high nibbles.
      const bool high = traits.packed && element >= kScaleDepth / 2;
      const int place = high ? element - kScaleDepth / 2 : element;
      uint8_t* block =
          out + i / kScaleDepth * kPanelColumns *
                    (traits.packed ? kScaleDepth / 2 : kScaleDepth);
      block[place / 4 * 64 + c * 4 + place % 4] |=
          static_cast<uint8_t>(high ? stored << 4 : stored);
    }
  }
}

// Pairs hold two elements of a column side by side.
void WeightPacker::PackHalves(int panel, uint8_t* out) const {
  const bool pairs = shape_.format == PanelFormat::kBfloat16;
  const int run = pairs ? 2 : 1;
  for (int c = 0; c < kPanelColumns; ++c) {
    const ColumnSource column = Column(panel * kPanelColumns + c);
    if (column.tensor == nullptr) continue;
    const absl::Span<const uint8_t> stored =
        RowBytes(*column.tensor, column.row);
    for (int k = 0; k < shape_.depth; ++k) {
      uint16_t number;
      std::memcpy(&number, &stored[2 * k], 2);
      if (pairs && std::fabs(Bfloat16ToFloat(number)) < kLeastBfloat) continue;
      const size_t at = (size_t{kPanelColumns} * (k / run) + c) * run + k % run;
      std::memcpy(out + 2 * at, &number, 2);
    }
  }
}

void WeightPacker::PackFloats(int panel, uint8_t* out) const {
  std::vector<float> row(shape_.depth);
  for (int c = 0; c < kPanelColumns; ++c) {
    const ColumnSource column = Column(panel * kPanelColumns + c);
    if (column.tensor == nullptr) continue;
    DequantizeRow(*column.tensor, column.row, absl::MakeSpan(row));
    for (int k = 0; k < shape_.depth; ++k) {
      std::memcpy(out + 4 * (size_t{kPanelColumns} * k + c), &row[k], 4);
    }
  }
}

}  // namespace penstock
