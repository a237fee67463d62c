#include "kernels/cpu/pass_state.h"

#include <algorithm>

#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

// Up to so many rows every thread normalises for itself: it costs less than
// waiting for the others.
constexpr int kOwnRows = 4;

template <class Visit>
void ForEachMatrix(const CpuLayer& layer, Visit visit) {
  for (const PanelMatrix* matrix :
       {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate_up,
        &layer.down, &layer.latent.query_down, &layer.latent.query_up,
        &layer.latent.kv_down, &layer.experts.router,
        &layer.experts.shared_gate_up, &layer.experts.shared_down}) {
    if (matrix->panels > 0) visit(*matrix);
  }
  for (const std::vector<PanelMatrix>* matrices :
       {&layer.latent.query_latent, &layer.latent.value_up,
        &layer.experts.gate_up, &layer.experts.down}) {
    for (const PanelMatrix& matrix : *matrices) visit(matrix);
  }
}

}  // namespace

Activations RowsFrom(const Activations& x, int row) {
  Activations rows = x;
  if (x.values != nullptr) rows.values += size_t(row) * x.depth;
  if (x.bfloats != nullptr) rows.bfloats += size_t(row) * x.depth;
  if (x.terms == 0) return rows;
  const size_t blocks = size_t(row) * x.terms * x.depth / kScaleDepth;
  rows.quants += blocks * kScaleDepth;
  rows.scales += blocks;
  rows.sums += blocks;
  rows.scaled_sums += blocks;
  if (x.half_sums != nullptr) rows.half_sums += 2 * blocks;
  if (x.refined > 0) rows.chosen += size_t(row) * x.refined;
  return rows;
}

PassState::PassState(const ForwardPassOptions& options)
    : options_(options),
      spec_(options_.model->spec()),
      scratch_(options_.pool->threads()) {}

void PassState::LayOut(Carver& carver) {
  const size_t rows = options_.max_rows;
  std::vector<const PanelMatrix*> of_normed = {&model().head()};
  int deepest = spec_.hidden;
  for (const CpuLayer& layer : model().layers()) {
    ForEachMatrix(layer, [&](const PanelMatrix& matrix) {
      deepest = std::max(deepest, matrix.depth);
      if (matrix.depth == spec_.hidden) of_normed.push_back(&matrix);
    });
  }
  hidden_ = carver.Take<float>(rows * spec_.hidden);
  projected_ = carver.Take<float>(rows * spec_.hidden);
  normed_ = LayOutActivations(carver, rows, spec_.hidden, of_normed);
  for (ThreadScratch& scratch : scratch_) {
    scratch.normed =
        LayOutActivations(carver, kOwnRows, spec_.hidden, of_normed);
    scratch.chosen = carver.Take<uint16_t>(
        kOwnRows * model().precision().RefinedOf(deepest / kScaleDepth));
  }
}

Activations PassState::LayOutActivations(
    Carver& carver, size_t rows, int depth,
    absl::Span<const PanelMatrix* const> uses) {
  Activations x;
  x.depth = depth;
  bool floats = false, bfloats = false, quants = false, halves = false;
  for (const PanelMatrix* matrix : uses) {
    if (TakesQuants(matrix->format)) {
      quants = true;
      halves |= TraitsOf(matrix->format).group < kScaleDepth;
    } else if (matrix->format == PanelFormat::kBfloat16) {
      bfloats = true;
    } else {
      floats = true;
    }
  }
  if (floats) x.values = carver.Take<float>(rows * depth);
  if (bfloats) x.bfloats = carver.Take<uint16_t>(rows * depth);
  if (!quants) return x;
  x.refined = model().precision().RefinedOf(depth / kScaleDepth);
  x.terms = x.refined > 0 ? 2 : 1;
  if (x.refined > 0) x.chosen = carver.Take<uint16_t>(rows * x.refined);
  const size_t blocks = rows * x.terms * depth / kScaleDepth;
  x.quants = carver.Take<int8_t>(blocks * kScaleDepth);
  x.scales = carver.Take<float>(blocks);
  x.sums = carver.Take<int32_t>(blocks);
  x.scaled_sums = carver.Take<float>(blocks);
  if (halves) x.half_sums = carver.Take<int32_t>(2 * blocks);
  return x;
}

Part PassState::PartOf(int count, int unit, int thread) const {
  const int64_t units = (count + unit - 1) / unit;
  const int parts = options_.pool->active();
  return {static_cast<int>(units * thread / parts * unit),
          static_cast<int>(
              std::min<int64_t>(count, units * (thread + 1) / parts * unit))};
}

void PassState::NormalizeRow(const float* x, const float* gain,
                             const Activations& out, int row) const {
  if (gain == nullptr) {
    kernels().quantize(x, 0, spec_.hidden, out, row);
    kernels().choose(out, row);
  } else {
    kernels().normalize(x, gain, spec_.norm_epsilon, out, row);
  }
}

const Activations& PassState::Normalize(int thread, Part rows,
                                        const float* gain) {
  const bool own = rows.count() <= kOwnRows;
  const Activations& out = own ? scratch_[thread].normed : normed_;
  const Part share =
      own ? Part{0, rows.count()} : PartOf(rows.count(), 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    NormalizeRow(hidden(rows.first + row), gain, out, row);
  }
  if (!own) Barrier();
  return out;
}

const Activations& PassState::Choose(int thread, int rows,
                                     const Activations& x) {
  if (x.refined == 0) return x;
  const bool own = rows <= kOwnRows;
  const Part share = own ? Part{0, rows} : PartOf(rows, 1, thread);
  Activations& ready = scratch_[thread].ready;
  ready = x;
  if (own) ready.chosen = scratch_[thread].chosen;
  for (int row = share.first; row < share.last; ++row) {
    kernels().choose(ready, row);
  }
  if (!own) Barrier();
  return ready;
}

void PassState::MultiplyPart(int thread, Part rows, Part panels,
                             const Activations& x, Epilogue epilogue,
                             const Product& product) {
  GemmTask task;
  task.weights = product.weights;
  task.x = &x;
  task.first_panel = panels.first;
  task.last_panel = panels.last;
  task.epilogue = epilogue;
  task.scale = spec_.residual_scale;
  task.y = product.y;
  task.y_stride = product.y_stride;
  task.bfloats = product.bfloats;
  for (int row = rows.first; row < rows.last; row += kGemmRows) {
    task.first_row = row;
    task.last_row = std::min(rows.last, row + kGemmRows);
    kernels().gemm(task);
  }
}

void PassState::Multiply(int thread, int rows, const Activations& x,
                         Epilogue epilogue,
                         absl::Span<const Product> products) {
  int panels = 0;
  for (const Product& product : products) panels += product.weights->panels;
  const Part share = PartOf(panels, kLeastPanels, thread);
  int start = 0;  // of a product's panels among all
  for (const Product& product : products) {
    const int count = product.weights->panels;
    const Part part = {std::max(0, share.first - start),
                       std::min(count, share.last - start)};
    start += count;
    if (part.first >= part.last) continue;
    MultiplyPart(thread, {0, rows}, part, x, epilogue, product);
  }
}

// BF16 is stored at once. Else 4 panels make one block of 32 activations, which
// the thread still has in its cache.
void PassState::MultiplyGated(int thread, Part rows, Part panels,
                              const Activations& x, const PanelMatrix& gate_up,
                              float* gated, const Activations& out) {
  const Epilogue epilogue = spec_.activation == Activation::kSilu
                                ? Epilogue::kGatedSilu
                                : Epilogue::kGatedGelu;
  const size_t stride = out.depth;
  if (out.values == nullptr && out.terms == 0) {
    return MultiplyPart(thread, rows, panels, x, epilogue,
                        {&gate_up, gated, stride, out.bfloats});
  }
  for (int row = rows.first; row < rows.last; row += kGemmRows) {
    const Part some = {row, std::min(rows.last, row + kGemmRows)};
    for (int panel = panels.first; panel < panels.last; panel += kPanelUnit) {
      MultiplyPart(thread, some, {panel, panel + kPanelUnit}, x, epilogue,
                   {&gate_up, gated, stride});
      const int first = panel / 2 * kPanelColumns;
      for (int r = some.first; r < some.last; ++r) {
        kernels().quantize(gated + r * stride + first, first,
                           first + kScaleDepth, out, r);
      }
    }
  }
}

void PassState::AddProduct(int thread, int rows, const Activations& x,
                           const PanelMatrix& weights, const float* post_norm) {
  const size_t stride = spec_.hidden;
  const Activations& ready = Choose(thread, rows, x);
  if (post_norm == nullptr) {
    Multiply(thread, rows, ready, Epilogue::kAdd,
             {{&weights, hidden_, stride}});
  } else {
    Multiply(thread, rows, ready, Epilogue::kStore,
             {{&weights, projected_, stride}});
    Barrier();
    AddProjected(PartOf(rows, 1, thread), post_norm);
  }
  Barrier();
}

void PassState::AddProjected(Part rows, const float* post_norm) {
  for (int row = rows.first; row < rows.last; ++row) {
    if (post_norm != nullptr) {
      kernels().normalize_in_place(projected(row), post_norm,
                                   spec_.norm_epsilon, spec_.hidden);
    }
    kernels().add_scaled(projected(row), spec_.residual_scale, spec_.hidden,
                         hidden(row));
  }
}

}  // namespace penstock
