#include "kernels/cpu/model_packer.h"

#include <atomic>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/model/files/content_hash.h"

namespace penstock {
namespace {

// To be raised when the same tensors are packed into other bytes and no shape
// shows it: packed weights outlive the program.
constexpr uint64_t kLayoutVersion = 2;

std::vector<ColumnSource> Rows(const TensorView& tensor,
                               const HeadOrder& order) {
  std::vector<ColumnSource> columns(tensor.rows());
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    columns[row] = {&tensor, order.Source(row)};
  }
  return columns;
}

}  // namespace

int64_t HeadOrder::Source(int64_t row) const {
  if (rope == nullptr || rope->pairing == RopePairing::kHalves) return row;
  const int64_t head = row / stride * stride + first;
  const int64_t at = row - head;
  if (at < 0 || at >= rope->dimensions) return row;
  const int64_t half = rope->dimensions / 2;
  return head + (at < half ? 2 * at : 2 * (at - half) + 1);
}

void ModelPacker::Add(WeightPacker packer, PanelMatrix* target) {
  packers_.push_back(std::move(packer));
  targets_.push_back(target);
}

void ModelPacker::AddMatrix(const TensorView& tensor, PanelMatrix* target,
                            const TensorView& bias, const HeadOrder& order) {
  if (!tensor.present()) return;
  Add(WeightPacker(Rows(tensor, order), bfloats_), target);
  *target = packers_.back().shape();
  if (!bias.present()) return;
  CHECK(bias.cols() == tensor.rows()) << bias.name;
  AddVector(bias, 0, &target->bias, order);
  vectors_.back().size = int64_t{kPanelColumns} * target->panels;
}

void ModelPacker::AddFloatMatrix(const TensorView& tensor,
                                 PanelMatrix* target) {
  Add(WeightPacker::OfFloats(Rows(tensor, {})), target);
  *target = packers_.back().shape();
}

void ModelPacker::AddGated(const TensorView& gate, const TensorView& up,
                           PanelMatrix* target) {
  if (!gate.present()) return;
  std::vector<ColumnSource> columns;
  for (int64_t start = 0; start < gate.rows(); start += kPanelColumns) {
    for (const TensorView* tensor : {&gate, &up}) {
      for (int64_t i = start; i < start + kPanelColumns; ++i) {
        columns.push_back({i < tensor->rows() ? tensor : nullptr, i});
      }
    }
  }
  Add(WeightPacker(std::move(columns), bfloats_), target);
  *target = packers_.back().shape();
}

void ModelPacker::AddVector(const TensorView& tensor, float offset,
                            const float** target, const HeadOrder& order) {
  if (!tensor.present()) return;
  vectors_.push_back({&tensor, offset, order, tensor.cols(), target});
}

uint64_t ModelPacker::LayoutId() const {
  std::vector<uint64_t> summary = {kLayoutVersion};
  for (const WeightPacker& packer : packers_) {
    const PanelMatrix& shape = packer.shape();
    for (const uint64_t value : {static_cast<uint64_t>(shape.format),
                                 static_cast<uint64_t>(shape.depth),
                                 static_cast<uint64_t>(shape.panels),
                                 static_cast<uint64_t>(shape.panel_bytes),
                                 static_cast<uint64_t>(shape.scale_offset),
                                 static_cast<uint64_t>(shape.min_offset)}) {
      summary.push_back(value);
    }
  }
  for (const Vector& vector : vectors_) {
    summary.push_back(static_cast<uint64_t>(vector.size));
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(summary.data());
  return HashContent({{bytes, summary.size() * sizeof summary[0]}}, 0,
                     SerialFor, {})
      .value();
}

void ModelPacker::LayOut(Carver& carver) {
  for (size_t i = 0; i < packers_.size(); ++i) {
    targets_[i]->data = carver.Take<uint8_t>(packers_[i].bytes());
  }
  for (const Vector& vector : vectors_) {
    *vector.target = carver.Take<float>(vector.size);
  }
}

void ModelPacker::WriteVectors() {
  for (const Vector& vector : vectors_) {
    const int64_t count = vector.tensor->cols();
    std::vector<float> values(count);
    DequantizeRow(*vector.tensor, 0, absl::MakeSpan(values));
    // The buffer is ours; views of it are read-only.
    auto* to = const_cast<float*>(*vector.target);
    for (int64_t i = 0; i < vector.size; ++i) {
      to[i] = i < count ? values[vector.order.Source(i)] + vector.offset : 0.0f;
    }
  }
}

void ModelPacker::Run(ThreadPool* pool) {
  WriteVectors();
  std::vector<std::pair<int, int>> work;  // matrix, panel
  for (size_t i = 0; i < packers_.size(); ++i) {
    for (int panel = 0; panel < packers_[i].shape().panels; ++panel) {
      work.emplace_back(static_cast<int>(i), panel);
    }
  }
  std::atomic<size_t> next{0};
  pool->Run([&](int, int) {
    for (size_t i; (i = next.fetch_add(1)) < work.size();) {
      const auto [matrix, panel] = work[i];
      auto* data = const_cast<uint8_t*>(targets_[matrix]->data);
      packers_[matrix].PackPanel(panel,
                                 data + panel * targets_[matrix]->panel_bytes);
    }
  });
}

}  // namespace penstock
