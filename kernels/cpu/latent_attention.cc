#include "kernels/cpu/latent_attention.h"

#include <algorithm>
#include <vector>

namespace penstock {

LatentAttention::LatentAttention(PassState* state)
    : state_(*state), spec_(state->spec()), latent_(*spec_.latent) {}

void LatentAttention::LayOut(Carver& carver) {
  const size_t rows = state_.options().max_rows;
  const size_t head_rows = rows * spec_.heads;
  std::vector<const PanelMatrix*> of_low, of_plain, of_attended;
  for (const CpuLayer& layer : state_.model().layers()) {
    of_low.push_back(&layer.latent.query_up);
    for (int head = 0; head < spec_.heads; ++head) {
      of_plain.push_back(&layer.latent.query_latent[head]);
      of_attended.push_back(&layer.latent.value_up[head]);
    }
  }
  if (latent_.query_rank > 0) {
    low_values_ = carver.Take<float>(rows * latent_.query_rank);
    low_ = state_.LayOutActivations(carver, rows, latent_.query_rank, of_low);
  }
  parts_ = carver.Take<float>(head_rows * latent_.query_dim());
  plain_ =
      state_.LayOutActivations(carver, head_rows, latent_.plain_dim, of_plain);
  attended_ =
      state_.LayOutActivations(carver, head_rows, latent_.latent, of_attended);
}

Activations LatentAttention::OfHead(const Activations& x, int head) const {
  return RowsFrom(x, head * state_.options().max_rows);
}

void LatentAttention::Project(int thread, int layer, const Activations& normed,
                              float* query, float* key, float* value) {
  const CpuLatent& weights = state_.model().layers()[layer].latent;
  const int rows = state_.work.all.rows();
  ProjectQueries(thread, layer, rows, normed, key);
  state_.Barrier();
  const Part share = state_.PartOf(rows, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    SplitRow(weights, row, query, key, value);
  }
  state_.Barrier();
  const size_t stride = spec_.q_width();
  const Part heads = state_.PartOf(spec_.heads, 1, thread);
  for (int head = heads.first; head < heads.last; ++head) {
    const PanelMatrix& matrix = weights.query_latent[head];
    state_.MultiplyPart(thread, {0, rows}, {0, matrix.panels},
                        OfHead(plain_, head), Epilogue::kStore,
                        {&matrix, query + head * spec_.head_dim, stride});
  }
}

// parts_, and the latent and rotated part before its norm.
void LatentAttention::ProjectQueries(int thread, int layer, int rows,
                                     const Activations& normed, float* key) {
  const CpuLayer& weights = state_.model().layers()[layer];
  const CpuLatent& latent = weights.latent;
  const size_t parts_stride = size_t(spec_.heads) * latent_.query_dim();
  const size_t key_stride = spec_.kv_width();
  const Product kv = {&latent.kv_down, key, key_stride};
  if (latent_.query_rank == 0) {
    state_.Multiply(thread, rows, normed, Epilogue::kStore,
                    {{&weights.query, parts_, parts_stride}, kv});
    return;
  }
  const size_t rank = latent_.query_rank;
  state_.Multiply(thread, rows, normed, Epilogue::kStore,
                  {{&latent.query_down, low_values_, rank}, kv});
  state_.Barrier();
  const Part share = state_.PartOf(rows, 1, thread);
  for (int row = share.first; row < share.last; ++row) {
    state_.kernels().normalize(low_values_ + row * rank, latent.query_norm,
                               spec_.norm_epsilon, low_, row);
  }
  state_.Barrier();
  state_.Multiply(thread, rows, low_, Epilogue::kStore,
                  {{&latent.query_up, parts_, parts_stride}});
}

// The plain parts of a row's queries on to plain_, the rotated ones to the
// queries; the latent normalised, as key and value.
void LatentAttention::SplitRow(const CpuLatent& weights, int row, float* query,
                               float* key, float* value) {
  for (int head = 0; head < spec_.heads; ++head) {
    const float* part =
        parts_ + (size_t(row) * spec_.heads + head) * latent_.query_dim();
    const Activations plain = OfHead(plain_, head);
    state_.kernels().quantize(part, 0, latent_.plain_dim, plain, row);
    state_.kernels().choose(plain, row);
    std::copy_n(part + latent_.plain_dim, latent_.rotated_dim,
                query + (size_t(row) * spec_.heads + head) * spec_.head_dim +
                    latent_.latent);
  }
  float* latent = key + size_t(row) * spec_.kv_width();
  state_.kernels().normalize_in_place(latent, weights.kv_norm,
                                      spec_.norm_epsilon, latent_.latent);
  std::copy_n(latent, latent_.latent,
              value + size_t(row) * spec_.value_width());
}

void LatentAttention::StoreAttended(int row, int head,
                                    const float* values) const {
  const Activations attended = OfHead(attended_, head);
  state_.kernels().quantize(values, 0, latent_.latent, attended, row);
  state_.kernels().choose(attended, row);
}

void LatentAttention::RaiseValues(int thread, int layer, int rows, float* out) {
  const CpuLatent& weights = state_.model().layers()[layer].latent;
  const size_t stride = spec_.attended_width();
  const Part heads = state_.PartOf(spec_.heads, 1, thread);
  for (int head = heads.first; head < heads.last; ++head) {
    const PanelMatrix& matrix = weights.value_up[head];
    state_.MultiplyPart(thread, {0, rows}, {0, matrix.panels},
                        OfHead(attended_, head), Epilogue::kStore,
                        {&matrix, out + head * latent_.value_dim, stride});
  }
}

}  // namespace penstock
