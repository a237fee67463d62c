#include "kernels/cpu/attention_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace penstock {
namespace {

// Queries that share the loads of a page, at least one row of a group.
constexpr int kTileQueries = 24;

// Whether a query sees something of a split.
bool Sees(const VisibleRange& visible, int split) {
  return visible.first < (split + 1) * kAttentionSplit &&
         visible.last > split * kAttentionSplit;
}

// A state of nothing: merging into it or from it changes no bit.
void Clear(const AttentionState& state, int query, int value_dim) {
  state.max[query] = -std::numeric_limits<float>::infinity();
  state.sum[query] = 0;
  std::fill_n(state.out + size_t(query) * value_dim, value_dim, 0.0f);
}

}  // namespace

AttentionBlock::AttentionBlock(PassState* state)
    : state_(*state),
      spec_(state->spec()),
      head_layout_(state->options().layout.head()),
      group_(spec_.heads / spec_.kv_heads),
      unit_heads_(std::min(group_, kTileQueries)),
      tile_rows_(std::max(1, kTileQueries / group_)),
      store_heads_(!spec_.latent.has_value() &&
                   spec_.value_dim % kScaleDepth == 0),
      cosine_(spec_.ropes.size()),
      sine_(spec_.ropes.size()),
      scratch_(state->threads()),
      next_unit_(spec_.layers) {
  if (spec_.latent.has_value()) {
    latent_ = std::make_unique<LatentAttention>(state);
  }
  for (const RopeSpec& rope : spec_.ropes) {
    speeds_.push_back(RopeSpeeds(rope, spec_.context_length));
  }
}

void AttentionBlock::LayOut(Carver& carver) {
  const size_t rows = state_.options().max_rows;
  std::vector<const PanelMatrix*> outputs;
  for (const CpuLayer& layer : state_.model().layers()) {
    outputs.push_back(&layer.output);
  }
  query_ = carver.Take<float>(rows * spec_.q_width());
  key_ = carver.Take<float>(rows * spec_.kv_width());
  value_ = carver.Take<float>(rows * spec_.value_width());
  if (!store_heads_) {
    attended_values_ = carver.Take<float>(rows * spec_.attended_width());
  }
  attended_ =
      state_.LayOutActivations(carver, rows, spec_.attended_width(), outputs);
  for (size_t i = 0; i < speeds_.size(); ++i) {
    cosine_[i] = carver.Take<float>(rows * speeds_[i].size());
    sine_[i] = carver.Take<float>(rows * speeds_[i].size());
  }
  const size_t queries = size_t(tile_rows_) * unit_heads_;
  for (ThreadScratch& scratch : scratch_) {
    scratch.scores = carver.Take<float>(kMaxQueryTile * kAttentionSplit);
    scratch.attended = carver.Take<float>(spec_.value_dim);
    for (AttentionState* state : {&scratch.state, &scratch.later}) {
      state->max = carver.Take<float>(queries);
      state->sum = carver.Take<float>(queries);
      state->out = carver.Take<float>(queries * spec_.value_dim);
    }
    scratch.query.resize(queries);
    scratch.visible.resize(queries);
  }
  if (latent_ != nullptr) latent_->LayOut(carver);
}

void AttentionBlock::Start() {
  for (std::atomic<int>& next : next_unit_) next = 0;
}

void AttentionBlock::PlaceRows(int thread) {
  const Part share = state_.PartOf(state_.work.all.rows(), 1, thread);
  for (size_t rope = 0; rope < speeds_.size(); ++rope) {
    const std::vector<double>& speeds = speeds_[rope];
    const double magnitude = spec_.ropes[rope].magnitude;
    for (int row = share.first; row < share.last; ++row) {
      for (size_t i = 0; i < speeds.size(); ++i) {
        const double angle = state_.plan->positions[row] * speeds[i];
        const size_t at = row * speeds.size() + i;
        cosine_[rope][at] = static_cast<float>(magnitude * std::cos(angle));
        sine_[rope][at] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  }
}

int AttentionBlock::Run(int thread, int layer) {
  const CpuLayer& weights = state_.model().layers()[layer];
  const int all = state_.work.all.rows();
  Project(thread, layer);

  const bool last = layer + 1 == spec_.layers;
  const RowSet& set = last ? state_.work.sampled : state_.work.all;
  const int rows = set.rows();
  // A tile may store what it alone reads; else all is stored first.
  const bool store_in_tiles = state_.work.tiles_are_whole && rows == all &&
                              unit_heads_ == group_ &&
                              spec_.qk_norm != QkNorm::kWhole;
  if (!store_in_tiles) {
    RotateAndStoreRows(thread, layer);
    state_.Barrier();
  }
  if (rows < all) {
    KeepSampledRows(thread);
    state_.Barrier();
  }
  if (rows == 0) return 0;
  AttendRows(thread, layer, set, store_in_tiles);
  state_.Barrier();
  FinishAttended(thread, layer, rows);
  state_.AddProduct(thread, rows, attended_, weights.output,
                    weights.attention_post_norm);
  return rows;
}

// Queries, keys and values of all rows, not yet rotated. Ends with a barrier.
void AttentionBlock::Project(int thread, int layer) {
  const CpuLayer& weights = state_.model().layers()[layer];
  const int rows = state_.work.all.rows();
  const Activations& normed =
      state_.Normalize(thread, {0, rows}, weights.attention_norm);
  if (latent_ != nullptr) {
    latent_->Project(thread, layer, normed, query_, key_, value_);
  } else {
    state_.Multiply(
        thread, rows, normed, Epilogue::kStore,
        {{&weights.query, query_, static_cast<size_t>(spec_.q_width())},
         {&weights.key, key_, static_cast<size_t>(spec_.kv_width())},
         {&weights.value, value_, static_cast<size_t>(spec_.value_width())}});
  }
  state_.Barrier();
}

// Moves the sampled rows to the front. They ascend, so none is overwritten
// before it has moved.
void AttentionBlock::KeepSampledRows(int thread) {
  if (thread != 0) return;
  const size_t width = spec_.q_width();
  for (int to = 0; to < state_.work.sampled.rows(); ++to) {
    const int from = state_.work.sampled_rows[to];
    std::memmove(state_.hidden(to), state_.hidden(from),
                 spec_.hidden * sizeof(float));
    std::memmove(query_ + to * width, query_ + from * width,
                 width * sizeof(float));
  }
}

void AttentionBlock::RotateAndStoreRows(int thread, int layer) {
  const Part share = state_.PartOf(state_.work.all.rows(), 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    RotateAndStore(layer, row, {0, spec_.kv_heads});
  }
}

// Normalises and rotates the queries of some KV heads, and stores their keys
// and values.
void AttentionBlock::RotateAndStore(int layer, int row, Part kv_heads) {
  NormalizeHeads(state_.model().layers()[layer], row, kv_heads);
  const Rotation rotation = RotationOf(layer, row);
  const int first = kv_heads.first;
  state_.kernels().rotate_query({.heads = kv_heads.count() * group_,
                                 .head_dim = spec_.head_dim,
                                 .rotation = rotation,
                                 .scale = spec_.score_scale,
                                 .query = query_ +
                                          size_t(row) * spec_.q_width() +
                                          first * group_ * spec_.head_dim});
  state_.kernels().write_kv(
      {.type = state_.options().layout.type,
       .layout = head_layout_,
       .kv_heads = kv_heads.count(),
       .head_dim = spec_.head_dim,
       .value_dim = spec_.value_dim,
       .rotation = rotation,
       .key = key_ + size_t(row) * spec_.kv_width() + first * spec_.head_dim,
       .value =
           value_ + size_t(row) * spec_.value_width() + first * spec_.value_dim,
       .page = HeadPage(state_.work.row_blocks[row], layer, first),
       .slot = state_.work.row_slots[row]});
}

// Precondition: all heads where they are normalised together.
void AttentionBlock::NormalizeHeads(const CpuLayer& weights, int row,
                                    Part kv_heads) {
  if (weights.query_norm == nullptr) return;
  const bool whole = spec_.qk_norm == QkNorm::kWhole;
  const auto normalize = [&](float* heads, const float* gain, int width,
                             Part part) {
    const int run = whole ? width : spec_.head_dim;
    for (int at = part.first * spec_.head_dim; at < part.last * spec_.head_dim;
         at += run) {
      state_.kernels().normalize_in_place(heads + size_t(row) * width + at,
                                          gain, spec_.norm_epsilon, run);
    }
  };
  normalize(query_, weights.query_norm, spec_.q_width(),
            {kv_heads.first * group_, kv_heads.last * group_});
  normalize(key_, weights.key_norm, spec_.kv_width(), kv_heads);
}

Rotation AttentionBlock::RotationOf(int layer, int row) const {
  const int rope = spec_.layer_specs[layer].rope;
  if (rope < 0) return {};
  const size_t at = row * speeds_[rope].size();
  return {.first = spec_.latent.has_value() ? spec_.latent->latent : 0,
          .dim = static_cast<int>(2 * speeds_[rope].size()),
          .cosine = cosine_[rope] + at,
          .sine = sine_[rope] + at};
}

void AttentionBlock::AttendRows(int thread, int layer, const RowSet& set,
                                bool store) {
  const int group_units = (group_ + unit_heads_ - 1) / unit_heads_;
  const int tile_units = spec_.kv_heads * group_units;
  const int units = static_cast<int>(set.tiles.size()) * tile_units;
  // Later rows of a prompt see more: the long ones go first.
  for (int i; (i = next_unit_[layer].fetch_add(1)) < units;) {
    const int index = units - 1 - i;
    const int kv_head = index % tile_units / group_units;
    const int first = index % group_units * unit_heads_;
    const Unit unit = {&set.tiles[index / tile_units],
                       kv_head,
                       {first, std::min(group_, first + unit_heads_)}};
    for (int row = 0; row < unit.tile->rows && store; ++row) {
      RotateAndStore(layer, unit.tile->first_row + row, {kv_head, kv_head + 1});
    }
    AttendUnit(scratch_[thread], layer, set, unit);
  }
}

void AttentionBlock::AttendUnit(ThreadScratch& scratch, int layer,
                                const RowSet& set, const Unit& unit) {
  const int heads = unit.heads.count();
  const int window = spec_.layer_specs[layer].window;
  const auto row_of = [&](int q) { return unit.tile->first_row + q / heads; };
  const auto head_of = [&](int q) {
    return unit.kv_head * group_ + unit.heads.first + q % heads;
  };
  AttentionTask task;
  task.type = state_.options().layout.type;
  task.layout = head_layout_;
  task.queries = unit.tile->rows * heads;
  for (int q = 0; q < task.queries; ++q) {
    const int end = set.positions[row_of(q)] + 1;
    scratch.query[q] = query_ + size_t(row_of(q)) * spec_.q_width() +
                       head_of(q) * spec_.head_dim;
    scratch.visible[q] = {window == 0 ? 0 : std::max(0, end - window), end};
  }
  task.head_dim = spec_.head_dim;
  task.value_dim = spec_.value_dim;
  task.score_cap = spec_.score_cap;
  task.query = scratch.query.data();
  task.visible = scratch.visible.data();
  task.pages = HeadPage(0, layer, unit.kv_head);
  task.page_stride = state_.options().layout.block_bytes();
  task.blocks = unit.tile->blocks;
  task.scratch = scratch.scores;
  AttendSplits(scratch, task);
  for (int q = 0; q < task.queries; ++q) {
    state_.kernels().finish(scratch.state, q, spec_.value_dim,
                            scratch.attended);
    StoreAttended(row_of(q), head_of(q), scratch.attended);
  }
}

// All splits of a task, merged in order into scratch.state.
void AttentionBlock::AttendSplits(ThreadScratch& scratch, AttentionTask& task) {
  // Rows of a tile ascend.
  const int first = task.visible[0].first / kAttentionSplit;
  const int end = task.visible[task.queries - 1].last;
  for (task.split = first; task.split * kAttentionSplit < end; ++task.split) {
    task.state = task.split == first ? scratch.state : scratch.later;
    state_.kernels().attend(task);
    for (int q = 0; q < task.queries; ++q) {
      const bool sees = Sees(task.visible[q], task.split);
      if (task.split == first) {
        if (!sees) Clear(scratch.state, q, spec_.value_dim);
      } else if (sees) {
        state_.kernels().merge(scratch.state, scratch.later, q,
                               spec_.value_dim);
      }
    }
  }
}

void AttentionBlock::StoreAttended(int row, int head, const float* values) {
  const int width = spec_.value_dim;
  if (latent_ != nullptr) {
    latent_->StoreAttended(row, head, values);
  } else if (store_heads_) {
    state_.kernels().quantize(values, head * width, (head + 1) * width,
                              attended_, row);
  } else {
    std::copy_n(
        values, width,
        attended_values_ + size_t(row) * spec_.attended_width() + head * width);
  }
}

// Makes attended_ of what was stored.
void AttentionBlock::FinishAttended(int thread, int layer, int rows) {
  if (store_heads_) return;
  if (latent_ != nullptr) {
    latent_->RaiseValues(thread, layer, rows, attended_values_);
    state_.Barrier();
  }
  const size_t width = spec_.attended_width();
  const Part share = state_.PartOf(rows, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    state_.kernels().quantize(attended_values_ + row * width, 0,
                              static_cast<int>(width), attended_, row);
  }
  state_.Barrier();
}

uint8_t* AttentionBlock::HeadPage(BlockIndex block, int layer,
                                  int kv_head) const {
  const ForwardPassOptions& options = state_.options();
  return options.arena.bytes.data() + block * options.layout.block_bytes() +
         layer * options.layout.layer_bytes() +
         size_t(kv_head) * head_layout_.bytes;
}

}  // namespace penstock
