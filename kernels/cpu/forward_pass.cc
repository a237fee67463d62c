#include "kernels/cpu/forward_pass.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/model/files/tensor_view.h"

namespace penstock {
namespace {

// Logit rows that are held at once.
constexpr int kLogitRows = 32;

}  // namespace

absl::StatusOr<std::unique_ptr<ForwardPass>> ForwardPass::Create(
    const ForwardPassOptions& options) {
  std::unique_ptr<ForwardPass> pass(new ForwardPass(options));
  Carver measure;
  pass->LayOut(measure);
  ASSIGN_OR_RETURN(pass->memory_, HugeBuffer::Create(measure.used()));
  Carver carver(pass->memory_.data());
  pass->LayOut(carver);
  return pass;
}

ForwardPass::ForwardPass(const ForwardPassOptions& options)
    : state_(options), attention_(&state_), feed_forward_(&state_) {}

void ForwardPass::LayOut(Carver& carver) {
  state_.LayOut(carver);
  attention_.LayOut(carver);
  feed_forward_.LayOut(carver);
  const PanelMatrix& head = state_.model().head();
  logits_ =
      carver.Take<float>(size_t{kLogitRows} * head.panels * kPanelColumns);
}

void ForwardPass::Run(const StepPlan& plan, const OnLogits& on_logits) {
  on_logits_ = &on_logits;
  state_.plan = &plan;
  state_.work = StepWork::Of(plan, attention_.tile_rows());
  attention_.Start();
  feed_forward_.Start();
  state_.options().pool->Run([this](int thread, int) { RunThread(thread); });
}

void ForwardPass::RunThread(int thread) {
  CopyBlocks(thread);
  Embed(thread);
  attention_.PlaceRows(thread);
  state_.Barrier();
  for (int layer = 0; layer < state_.spec().layers; ++layer) {
    const int rows = attention_.Run(thread, layer);
    if (rows > 0) feed_forward_.Run(thread, layer, rows);
  }
  SampleRows(thread);
}

void ForwardPass::CopyBlocks(int thread) {
  // In order and on one thread: a copy may read what an earlier one wrote.
  if (thread != 0) return;
  const size_t bytes = state_.options().layout.block_bytes();
  uint8_t* arena = state_.options().arena.bytes.data();
  for (const StepPlan::BlockCopy& copy : state_.plan->copies) {
    std::memcpy(arena + copy.to * bytes, arena + copy.from * bytes, bytes);
  }
}

void ForwardPass::Embed(int thread) {
  const ModelSpec& spec = state_.spec();
  const Part share = state_.PartOf(state_.work.all.rows(), 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    float* hidden = state_.hidden(row);
    DequantizeRow(state_.model().embedding(), state_.plan->tokens[row],
                  absl::MakeSpan(hidden, spec.hidden));
    if (spec.embedding_scale == 1) continue;
    for (int i = 0; i < spec.hidden; ++i) hidden[i] *= spec.embedding_scale;
  }
}

void ForwardPass::SampleRows(int thread) {
  const ModelSpec& spec = state_.spec();
  const StepWork& work = state_.work;
  const PanelMatrix& head = state_.model().head();
  const bool plain = spec.logit_scale == 1 && spec.logit_cap == 0;
  const int stride = head.panels * kPanelColumns;
  for (int first = 0; first < work.sampled.rows(); first += kLogitRows) {
    const int rows = std::min(kLogitRows, work.sampled.rows() - first);
    const Activations& normed = state_.Normalize(thread, {first, first + rows},
                                                 state_.model().output_norm());
    state_.Multiply(thread, rows, normed, Epilogue::kStore,
                    {{&head, logits_, static_cast<size_t>(stride)}});
    state_.Barrier();
    const Part share = state_.PartOf(rows, 1, thread);
    for (int row = share.first; row < share.last; ++row) {
      float* logits = logits_ + size_t(row) * stride;
      if (!plain) {
        state_.kernels().soft_cap(logits, spec.logit_scale, spec.logit_cap,
                                  stride);
      }
      for (int i = work.sample_starts[first + row];
           i < work.sample_starts[first + row + 1]; ++i) {
        (*on_logits_)(thread, work.samples[i],
                      {logits, size_t(spec.vocab_size)});
      }
    }
    state_.Barrier();
  }
}

}  // namespace penstock
