#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/model/model_spec.h"
#include "kernels/oracle/oracle_pages.h"

namespace penstock {

// Turns head vectors by the angle of their position.
class Rope {
 public:
  Rope(const RopeSpec& spec, int head_dim, int context_length);

  // Rotates the first dimensions of each of `heads` vectors that lie head_dim
  // floats apart.
  void Rotate(int position, int heads, float* values) const;

 private:
  const RopeSpec spec_;
  const int head_dim_;
  std::vector<double> frequencies_;  // radians a position, by pair
};

// Attention of one row: each query head over the positions up to `position`
// that the layer's window holds, in the KV head it shares. Keys are taken in
// order of position, so the result depends on the sequence alone.
//   query  [heads, head_dim], rotated
//   out    [heads, value_dim]
void Attend(const ModelSpec& spec, const OraclePages& pages, int layer,
            absl::Span<const BlockIndex> blocks, int position,
            const float* query, float* out);

}  // namespace penstock
