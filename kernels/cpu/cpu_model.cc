#include "kernels/cpu/cpu_model.h"

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

absl::Status CheckMultiple(absl::string_view field, int value, int unit,
                           int most) {
  if (value > 0 && value % unit == 0 && value <= most) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      field, " is ", value, "; the CPU backend takes multiples of ", unit,
      " up to ", most));
}

absl::Status CheckWidths(const ModelSpec& spec) {
  constexpr int kMost = 1 << 20;
  RETURN_IF_ERROR(CheckMultiple("hidden size", spec.hidden, 32, kMost));
  RETURN_IF_ERROR(CheckMultiple("feed-forward size", spec.ffn, 32, kMost));
  RETURN_IF_ERROR(CheckMultiple("head size", spec.head_dim, 32, 512));
  return CheckMultiple("rotary dimensions", spec.ropes[0].dimensions, 2,
                       spec.head_dim);
}

std::vector<ColumnSource> Rows(const TensorView& tensor) {
  std::vector<ColumnSource> columns(tensor.rows());
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    columns[row] = {&tensor, row};
  }
  return columns;
}

// Rows of a query or key projection, each head's rotated pairs as halves. A
// score is a sum over dimensions of both, so their order is free.
std::vector<ColumnSource> RotatedRows(const TensorView& tensor,
                                      const ModelSpec& spec) {
  std::vector<ColumnSource> columns = Rows(tensor);
  if (spec.ropes[0].pairing == RopePairing::kHalves) return columns;
  const int half = spec.ropes[0].dimensions / 2;
  for (size_t head = 0; head < columns.size(); head += spec.head_dim) {
    for (int i = 0; i < half; ++i) {
      columns[head + i].row = head + 2 * i;
      columns[head + half + i].row = head + 2 * i + 1;
    }
  }
  return columns;
}

// Panels of `first` and `second` in turn. Precondition: as many rows in both.
std::vector<ColumnSource> AlternatePanels(const TensorView& first,
                                          const TensorView& second) {
  std::vector<ColumnSource> columns;
  for (int64_t start = 0; start < first.rows(); start += kPanelColumns) {
    for (const TensorView* tensor : {&first, &second}) {
      for (int64_t i = start; i < start + kPanelColumns; ++i) {
        columns.push_back({i < tensor->rows() ? tensor : nullptr, i});
      }
    }
  }
  return columns;
}

// All matrices of a model on their way to one buffer.
class PackJob {
 public:
  // `matrix` gets its data when the job has run; it must stay where it is.
  void Add(std::vector<ColumnSource> columns, int terms, PanelMatrix* matrix) {
    packers_.emplace_back(std::move(columns), terms);
    *matrix = packers_.back().shape();
    targets_.push_back(matrix);
  }

  void Reserve(Carver& carver) {
    for (size_t i = 0; i < packers_.size(); ++i) {
      targets_[i]->data = carver.Take<uint8_t>(packers_[i].bytes());
    }
  }

  void Run(ThreadPool* pool) {
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
        // The buffer is ours; views of it are read-only.
        auto* data = const_cast<uint8_t*>(targets_[matrix]->data);
        packers_[matrix].PackPanel(
            panel, data + panel * targets_[matrix]->panel_bytes);
      }
    });
  }

 private:
  std::vector<WeightPacker> packers_;
  std::vector<PanelMatrix*> targets_;
};

const float* CopyNorm(const TensorView& tensor, Carver& carver) {
  float* values = carver.Take<float>(tensor.cols());
  if (values != nullptr) {
    DequantizeRow(tensor, 0, absl::MakeSpan(values, tensor.cols()));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuModel>> CpuModel::Create(
    const ModelFile* file, const ActivationTerms& terms, ThreadPool* pool) {
  const ModelSpec& spec = file->spec();
  RETURN_IF_ERROR(CheckWidths(spec));
  std::unique_ptr<CpuModel> model(new CpuModel(file));
  const ModelWeights& weights = file->weights();
  model->layers_.resize(spec.layers);
  PackJob job;
  for (int i = 0; i < spec.layers; ++i) {
    const LayerWeights& from = weights.layers[i];
    CpuLayer& to = model->layers_[i];
    job.Add(RotatedRows(from.q, spec), terms.query, &to.query);
    job.Add(RotatedRows(from.k, spec), terms.key, &to.key);
    job.Add(Rows(from.v), terms.value, &to.value);
    job.Add(Rows(from.o), terms.output, &to.output);
    job.Add(AlternatePanels(from.gate, from.up), terms.gate_up, &to.gate_up);
    job.Add(Rows(from.down), terms.down, &to.down);
  }
  job.Add(Rows(weights.output), terms.head, &model->head_);

  auto lay_out = [&](Carver& carver) {
    job.Reserve(carver);
    for (int i = 0; i < spec.layers; ++i) {
      const LayerWeights& from = weights.layers[i];
      CpuLayer& to = model->layers_[i];
      to.attention_norm = CopyNorm(from.attention_norm, carver);
      to.ffn_norm = CopyNorm(from.ffn_norm, carver);
    }
    model->output_norm_ = CopyNorm(weights.output_norm, carver);
  };
  Carver measure;
  lay_out(measure);
  ASSIGN_OR_RETURN(model->memory_, HugeBuffer::Create(measure.used()));
  Carver carver(model->memory_.data());
  lay_out(carver);
  job.Run(pool);

  model->rope_speeds_ = RopeSpeeds(spec.ropes[0], spec.context_length);
  return model;
}

}  // namespace penstock
