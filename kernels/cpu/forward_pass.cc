#include "kernels/cpu/forward_pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/model/files/tensor_view.h"
#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

// Queries that share the loads of a page, at least one row of a group.
constexpr int kTileQueries = 24;
// Logit rows that are held at once.
constexpr int kLogitRows = 32;
// Rows whose activations a thread reads again and again per panel: they have
// to fit the second-level cache.
constexpr int kGemmRows = 512;
// Up to so many rows every thread normalises for itself: it costs less than
// waiting for the others.
constexpr int kOwnRows = 4;
// Panels are dealt out in fours: what the widest tile takes.
constexpr int kPanelUnit = 4;

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
    : options_(options),
      spec_(options_.model->spec()),
      group_(spec_.heads / spec_.kv_heads),
      tile_rows_(std::max(1, kTileQueries / group_)),
      scratch_(options_.pool->threads()),
      next_tile_(spec_.layers) {}

void ForwardPass::LayOut(Carver& carver) {
  const size_t rows = options_.max_rows;
  const PanelMatrix& head = options_.model->head();
  std::vector<const PanelMatrix*> of_normed = {&head}, of_attended,
                                  of_activated;
  for (const CpuLayer& layer : options_.model->layers()) {
    of_normed.insert(of_normed.end(),
                     {&layer.query, &layer.key, &layer.value, &layer.gate_up});
    of_attended.push_back(&layer.output);
    of_activated.push_back(&layer.down);
  }
  hidden_ = carver.Take<float>(rows * spec_.hidden);
  query_ = carver.Take<float>(rows * spec_.q_width());
  key_ = carver.Take<float>(rows * spec_.kv_width());
  value_ = carver.Take<float>(rows * spec_.kv_width());
  gated_ = carver.Take<float>(rows * spec_.ffn);
  logits_ =
      carver.Take<float>(size_t{kLogitRows} * head.panels * kPanelColumns);
  cosine_ = carver.Take<float>(rows * spec_.ropes[0].dimensions / 2);
  sine_ = carver.Take<float>(rows * spec_.ropes[0].dimensions / 2);
  normed_ = LayOutActivations(carver, rows, spec_.hidden, of_normed);
  attended_ = LayOutActivations(carver, rows, spec_.q_width(), of_attended);
  activated_ = LayOutActivations(carver, rows, spec_.ffn, of_activated);
  for (ThreadScratch& scratch : scratch_) {
    LayOutThread(carver, scratch);
    scratch.normed =
        LayOutActivations(carver, kOwnRows, spec_.hidden, of_normed);
  }
}

void ForwardPass::LayOutThread(Carver& carver, ThreadScratch& scratch) {
  const int depth = std::max({spec_.hidden, spec_.q_width(), spec_.ffn});
  const size_t queries = size_t(tile_rows_) * group_;
  scratch.unpacked = carver.Take<uint8_t>(GemmScratchBytes(depth));
  scratch.scores = carver.Take<float>(kMaxQueryTile * kAttentionSplit);
  scratch.attended = carver.Take<float>(spec_.head_dim);
  for (AttentionState* state : {&scratch.state, &scratch.later}) {
    state->max = carver.Take<float>(queries);
    state->sum = carver.Take<float>(queries);
    state->out = carver.Take<float>(queries * spec_.head_dim);
  }
  scratch.query.resize(queries);
  scratch.visible.resize(queries);
}

// Room for every form of input that a matrix of the model takes.
Activations ForwardPass::LayOutActivations(
    Carver& carver, size_t rows, int depth,
    absl::Span<const PanelMatrix* const> uses) {
  Activations x;
  x.depth = depth;
  bool floats = false;
  for (const PanelMatrix* matrix : uses) {
    if (TakesQuants(matrix->format)) {
      x.terms = std::max(x.terms, matrix->terms);
    } else {
      floats = true;
    }
  }
  if (floats) x.values = carver.Take<float>(rows * depth);
  if (x.terms == 0) return x;
  const size_t blocks = rows * x.terms * depth / kScaleDepth;
  x.quants = carver.Take<int8_t>(blocks * kScaleDepth);
  x.scales = carver.Take<float>(blocks);
  x.sums = carver.Take<int32_t>(blocks);
  x.scaled_sums = carver.Take<float>(blocks);
  x.half_sums = carver.Take<int32_t>(2 * blocks);
  return x;
}

void ForwardPass::Run(const StepPlan& plan, const OnLogits& on_logits) {
  plan_ = &plan;
  on_logits_ = &on_logits;
  work_ = StepWork::Of(plan, tile_rows_);
  for (std::atomic<int>& next : next_tile_) next = 0;
  options_.pool->Run([this](int thread, int) { RunThread(thread); });
}

ForwardPass::Part ForwardPass::PartOf(int count, int unit, int thread) const {
  const int64_t units = (count + unit - 1) / unit;
  const int threads = options_.pool->threads();
  return {static_cast<int>(units * thread / threads * unit),
          static_cast<int>(
              std::min<int64_t>(count, units * (thread + 1) / threads * unit))};
}

void ForwardPass::RunThread(int thread) {
  CopyBlocks(thread);
  Embed(thread);
  options_.pool->Barrier();
  for (int layer = 0; layer < spec_.layers; ++layer) RunLayer(thread, layer);
  SampleRows(thread);
}

void ForwardPass::CopyBlocks(int thread) {
  const size_t bytes = options_.layout.block_bytes();
  // In order and on one thread: a copy may read what an earlier one wrote.
  if (thread != 0) return;
  for (const StepPlan::BlockCopy& copy : plan_->copies) {
    std::memcpy(Page(copy.to, 0), Page(copy.from, 0), bytes);
  }
}

void ForwardPass::Embed(int thread) {
  const std::vector<double>& speeds = options_.model->rope_speeds();
  const Part share = PartOf(work_.all.rows(), 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    DequantizeRow(
        options_.model->embedding(), plan_->tokens[row],
        absl::MakeSpan(hidden_ + size_t(row) * spec_.hidden, spec_.hidden));
    for (size_t i = 0; i < speeds.size(); ++i) {
      const double angle = plan_->positions[row] * speeds[i];
      cosine_[row * speeds.size() + i] = static_cast<float>(std::cos(angle));
      sine_[row * speeds.size() + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void ForwardPass::RunLayer(int thread, int layer) {
  ThreadPool& pool = *options_.pool;
  const CpuLayer& weights = options_.model->layers()[layer];
  const size_t kv_width = spec_.kv_width();
  const int all = work_.all.rows();
  Multiply(thread, all,
           Normalize(thread, {.last = all}, weights.attention_norm),
           Epilogue::kStore,
           {{&weights.query, query_, static_cast<size_t>(spec_.q_width())},
            {&weights.key, key_, kv_width},
            {&weights.value, value_, kv_width}});
  pool.Barrier();

  const bool last = layer + 1 == spec_.layers;
  const RowSet& set = last ? work_.sampled : work_.all;
  const int rows = set.rows();
  // A tile may store what it alone reads; else all is stored first.
  const bool store_in_tiles = work_.tiles_are_whole && rows == all;
  if (!store_in_tiles) {
    RotateAndStoreRows(thread, layer);
    pool.Barrier();
  }
  if (rows < all) {
    KeepSampledRows(thread);
    pool.Barrier();
  }
  if (rows == 0) return;
  AttendRows(thread, layer, set, store_in_tiles);
  pool.Barrier();
  const size_t hidden = spec_.hidden;
  Multiply(thread, rows, attended_, Epilogue::kAdd,
           {{&weights.output, hidden_, hidden}});
  pool.Barrier();
  FeedForward(thread, rows, Normalize(thread, {.last = rows}, weights.ffn_norm),
              weights.gate_up);
  pool.Barrier();
  Multiply(thread, rows, activated_, Epilogue::kAdd,
           {{&weights.down, hidden_, hidden}});
  pool.Barrier();
}

// Moves the sampled rows to the front. They ascend, so none is overwritten
// before it has moved.
void ForwardPass::KeepSampledRows(int thread) {
  if (thread != 0) return;
  for (int to = 0; to < work_.sampled.rows(); ++to) {
    const size_t from = work_.sampled_rows[to];
    std::memmove(hidden_ + to * size_t(spec_.hidden),
                 hidden_ + from * spec_.hidden, spec_.hidden * sizeof(float));
    std::memmove(query_ + to * size_t(spec_.q_width()),
                 query_ + from * spec_.q_width(),
                 spec_.q_width() * sizeof(float));
  }
}

// Rows of the residual stream, normalised, as rows from 0 on. Afterwards every
// thread may read them all.
const Activations& ForwardPass::Normalize(int thread, Part rows,
                                          const float* gain) {
  const int count = rows.last - rows.first;
  const bool own = count <= kOwnRows;
  const Activations& out = own ? scratch_[thread].normed : normed_;
  const Part share = own ? Part{0, count} : PartOf(count, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    options_.kernels->normalize(
        hidden_ + size_t(rows.first + row) * spec_.hidden, gain,
        spec_.norm_epsilon, out, row);
  }
  if (!own) options_.pool->Barrier();
  return out;
}

void ForwardPass::Multiply(int thread, int rows, const Activations& x,
                           Epilogue epilogue,
                           absl::Span<const Product> products) {
  int panels = 0;
  for (const Product& product : products) panels += product.weights->panels;
  const Part share = PartOf(panels, kPanelUnit, thread);
  GemmTask task;
  task.x = &x;
  task.epilogue = epilogue;
  task.scratch = scratch_[thread].unpacked;
  int start = 0;  // of a product's panels among all
  for (const Product& product : products) {
    task.weights = product.weights;
    task.y = product.y;
    task.y_stride = product.y_stride;
    task.first_panel = std::max(0, share.first - start);
    task.last_panel = std::min(product.weights->panels, share.last - start);
    start += product.weights->panels;
    if (task.first_panel >= task.last_panel) continue;
    for (int row = 0; row < rows; row += kGemmRows) {
      task.first_row = row;
      task.last_row = std::min(rows, row + kGemmRows);
      options_.kernels->gemm(task);
    }
  }
}

// Gate and up projections, SiLU, and quantisation of the product: 4 panels
// make one block of 32 activations, which the thread still has in its cache.
void ForwardPass::FeedForward(int thread, int rows, const Activations& x,
                              const PanelMatrix& gate_up) {
  const Part share = PartOf(gate_up.panels, kPanelUnit, thread);
  GemmTask task;
  task.weights = &gate_up;
  task.x = &x;
  task.epilogue = Epilogue::kGatedSilu;
  task.scratch = scratch_[thread].unpacked;
  task.y = gated_;
  task.y_stride = spec_.ffn;
  for (int row = 0; row < rows; row += kGemmRows) {
    task.first_row = row;
    task.last_row = std::min(rows, row + kGemmRows);
    for (int panel = share.first; panel < share.last; panel += kPanelUnit) {
      task.first_panel = panel;
      task.last_panel = panel + kPanelUnit;
      options_.kernels->gemm(task);
      const int first = panel / 2 * kPanelColumns;
      for (int r = task.first_row; r < task.last_row; ++r) {
        options_.kernels->quantize(gated_ + size_t(r) * spec_.ffn + first,
                                   first, first + kScaleDepth, activated_, r);
      }
    }
  }
}

void ForwardPass::RotateAndStoreRows(int thread, int layer) {
  const Part share = PartOf(work_.all.rows(), 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    RotateAndStore(layer, row, {.last = spec_.kv_heads});
  }
}

// Rotates the queries of some KV heads, and stores their keys and values.
void ForwardPass::RotateAndStore(int layer, int row, Part kv_heads) {
  const int dim = spec_.head_dim;
  const int rope_dim = spec_.ropes[0].dimensions;
  const float* cosine = cosine_ + size_t(row) * rope_dim / 2;
  const float* sine = sine_ + size_t(row) * rope_dim / 2;
  const size_t kv = size_t(row) * spec_.kv_width() + kv_heads.first * dim;
  const int count = kv_heads.last - kv_heads.first;
  options_.kernels->rotate_query(
      {.heads = count * group_,
       .head_dim = dim,
       .rope_dim = rope_dim,
       .cosine = cosine,
       .sine = sine,
       .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
       .query = query_ + size_t(row) * spec_.q_width() +
                kv_heads.first * group_ * dim});
  options_.kernels->write_kv(
      {.kv_heads = count,
       .head_dim = dim,
       .rope_dim = rope_dim,
       .cosine = cosine,
       .sine = sine,
       .key = key_ + kv,
       .value = value_ + kv,
       .page = HeadPage(work_.row_blocks[row], layer, kv_heads.first),
       .slot = work_.row_slots[row]});
}

void ForwardPass::AttendRows(int thread, int layer, const RowSet& set,
                             bool store) {
  const int units = static_cast<int>(set.tiles.size()) * spec_.kv_heads;
  // Later rows of a prompt see more: the long ones go first.
  for (int i; (i = next_tile_[layer].fetch_add(1)) < units;) {
    const int unit = units - 1 - i;
    const AttentionTile& tile = set.tiles[unit / spec_.kv_heads];
    const int kv_head = unit % spec_.kv_heads;
    for (int row = 0; row < tile.rows && store; ++row) {
      RotateAndStore(layer, tile.first_row + row, {kv_head, kv_head + 1});
    }
    AttendTile(scratch_[thread], layer, kv_head, set, tile);
  }
}

void ForwardPass::AttendTile(ThreadScratch& scratch, int layer, int kv_head,
                             const RowSet& set, const AttentionTile& tile) {
  const int dim = spec_.head_dim;
  int longest = 0;
  for (int q = 0; q < tile.rows * group_; ++q) {
    const int row = tile.first_row + q / group_;
    const int head = kv_head * group_ + q % group_;
    scratch.query[q] = query_ + size_t(row) * spec_.q_width() + head * dim;
    scratch.visible[q] = set.positions[row] + 1;
    longest = std::max(longest, scratch.visible[q]);
  }
  AttentionTask task;
  task.queries = tile.rows * group_;
  task.head_dim = dim;
  task.query = scratch.query.data();
  task.visible = scratch.visible.data();
  task.pages = HeadPage(0, layer, kv_head);
  task.page_stride = options_.layout.block_bytes();
  task.blocks = tile.blocks;
  task.scratch = scratch.scores;
  for (task.split = 0; task.split * kAttentionSplit < longest; ++task.split) {
    task.state = task.split == 0 ? scratch.state : scratch.later;
    options_.kernels->attend(task);
    for (int q = 0; q < task.queries && task.split > 0; ++q) {
      if (scratch.visible[q] <= task.split * kAttentionSplit) continue;
      options_.kernels->merge(scratch.state, scratch.later, q, dim);
    }
  }
  for (int q = 0; q < task.queries; ++q) {
    const int column = (kv_head * group_ + q % group_) * dim;
    options_.kernels->finish(scratch.state, q, dim, scratch.attended);
    options_.kernels->quantize(scratch.attended, column, column + dim,
                               attended_, tile.first_row + q / group_);
  }
}

void ForwardPass::SampleRows(int thread) {
  const PanelMatrix& head = options_.model->head();
  const size_t stride = size_t(head.panels) * kPanelColumns;
  for (int first = 0; first < work_.sampled.rows(); first += kLogitRows) {
    const int rows = std::min(kLogitRows, work_.sampled.rows() - first);
    Multiply(
        thread, rows,
        Normalize(thread, {first, first + rows}, options_.model->output_norm()),
        Epilogue::kStore, {{&head, logits_, stride}});
    options_.pool->Barrier();
    const Part share = PartOf(rows, 1, thread);
    for (int row = share.first; row < share.last; ++row) {
      const absl::Span<const float> logits(logits_ + row * stride,
                                           spec_.vocab_size);
      for (int i = work_.sample_starts[first + row];
           i < work_.sample_starts[first + row + 1]; ++i) {
        (*on_logits_)(thread, work_.samples[i], logits);
      }
    }
    options_.pool->Barrier();
  }
}

uint8_t* ForwardPass::HeadPage(BlockIndex block, int layer, int kv_head) const {
  // K and V of 16 tokens in F16.
  const size_t head_bytes = size_t{2} * 2 * kBlockTokens * spec_.head_dim;
  return Page(block, layer) + kv_head * head_bytes;
}

uint8_t* ForwardPass::Page(BlockIndex block, int layer) const {
  return options_.arena.bytes.data() + block * options_.layout.block_bytes() +
         layer * options_.layout.layer_bytes();
}

}  // namespace penstock
