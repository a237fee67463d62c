#pragma once

#include <cstdint>
#include <vector>

#include "common/model/files/tensor_view.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

const PanelTraits& TraitsOf(PanelFormat format);

// Whether a matrix of this format multiplies quantised activations.
bool TakesQuants(PanelFormat format);

// One column of a packed matrix: a row of a tensor.
struct ColumnSource {
  const TensorView* tensor = nullptr;  // null: zeros
  int64_t row = 0;
};

// A matrix to be packed. Columns may come from several tensors, in any order.
// If their types differ, the matrix is packed as F32. Packed weights are
// exactly the stored ones, save those of BF16 under kLeastBfloat.
class WeightPacker {
 public:
  // Precondition: `columns` is not empty, every tensor has the same depth, a
  // multiple of 32, and outlives the packer. `bfloats`: weights in BF16
  // multiply inputs in BF16.
  explicit WeightPacker(std::vector<ColumnSource> columns, bool bfloats = true);
  // The same packed as F32 whatever the types.
  static WeightPacker OfFloats(std::vector<ColumnSource> columns);

  // Shape and layout, without data.
  const PanelMatrix& shape() const { return shape_; }
  size_t bytes() const { return shape_.panels * shape_.panel_bytes; }

  // Writes panel `panel` to `out` [panel_bytes]. Panels may be packed by
  // different threads.
  void PackPanel(int panel, uint8_t* out) const;

 private:
  WeightPacker() = default;
  void LayOut(PanelFormat format);
  ColumnSource Column(int index) const;
  void PackQuants(int panel, uint8_t* out) const;
  void PackHalves(int panel, uint8_t* out) const;
  void PackFloats(int panel, uint8_t* out) const;

  std::vector<ColumnSource> columns_;
  PanelMatrix shape_;
};

}  // namespace penstock
