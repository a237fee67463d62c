#pragma once

#include "kernels/cpu/pass_state.h"

namespace penstock {

// What latent attention does between the residual stream and the queries, keys
// and values of its one KV head, and behind them. Owns the buffers between.
class LatentAttention {
 public:
  // Precondition: the model's spec has `latent`.
  explicit LatentAttention(PassState* state);
  void LayOut(Carver& carver);

  // Queries in the latent's space, and latent and rotated part as key and
  // value, of all rows of the step, not yet rotated; strides as ModelSpec's
  // widths. A barrier has to follow.
  void Project(int thread, int layer, const Activations& normed, float* query,
               float* key, float* value);

  // Keeps what head `head` of a row attended to, [latent].
  void StoreAttended(int row, int head, const float* values) const;
  // out [rows][attended_width] = each head's value of what was stored. Barriers
  // have to precede and to follow.
  void RaiseValues(int thread, int layer, int rows, float* out);

 private:
  void ProjectQueries(int thread, int layer, int rows,
                      const Activations& normed, float* key);
  void SplitRow(const CpuLatent& weights, int row, float* query, float* key,
                float* value);
  // Of a head's rows, which lie together.
  Activations OfHead(const Activations& x, int head) const;

  PassState& state_;
  const ModelSpec& spec_;
  const LatentAttentionSpec& latent_;
  float* low_values_ = nullptr;  // [max_rows][query_rank]
  Activations low_;              // the same, normalised
  float* parts_ = nullptr;       // [max_rows][heads][query_dim]
  Activations plain_;            // [heads][max_rows], plain_dim deep
  Activations attended_;         // [heads][max_rows], latent deep
};

}  // namespace penstock
