#include "kernels/oracle/oracle_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/exp.h"
#include "kernels/oracle/dense.h"
#include "kernels/oracle/elementwise.h"

namespace penstock {

Rope::Rope(const RopeSpec& spec, int head_dim, int context_length)
    : spec_(spec),
      head_dim_(head_dim),
      frequencies_(RopeSpeeds(spec, context_length)) {}

void Rope::Rotate(int position, int heads, float* values) const {
  const int pairs = static_cast<int>(frequencies_.size());
  const bool interleaved = spec_.pairing == RopePairing::kInterleaved;
  for (int i = 0; i < pairs; ++i) {
    const double angle = position * frequencies_[i];
    const double cosine = spec_.magnitude * std::cos(angle);
    const double sine = spec_.magnitude * std::sin(angle);
    const int first = interleaved ? 2 * i : i;
    const int second = interleaved ? 2 * i + 1 : i + pairs;
    for (int head = 0; head < heads; ++head) {
      float* vector = values + static_cast<size_t>(head) * head_dim_;
      const double a = vector[first];
      const double b = vector[second];
      vector[first] = static_cast<float>(a * cosine - b * sine);
      vector[second] = static_cast<float>(a * sine + b * cosine);
    }
  }
}

void Attend(const ModelSpec& spec, const OraclePages& pages, int layer,
            absl::Span<const BlockIndex> blocks, int position,
            const float* query, float* out) {
  const int group = spec.heads / spec.kv_heads;
  const int window = spec.layer_specs[layer].window;
  const int first = window == 0 ? 0 : std::max(0, position - window + 1);
  std::vector<float> scores(position + 1 - first);
  for (int head = 0; head < spec.heads; ++head) {
    const int kv_head = head / group;
    const float* q = query + static_cast<size_t>(head) * spec.head_dim;
    float* sum = out + static_cast<size_t>(head) * spec.value_dim;
    for (size_t i = 0; i < scores.size(); ++i) {
      const float* k =
          pages.K(layer, blocks, first + static_cast<int>(i), kv_head);
      scores[i] =
          SoftCap(spec.score_scale * Dot(q, k, spec.head_dim), spec.score_cap);
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (float& score : scores) {
      const double weight = ExpNonPositive(score - max);
      total += weight;
      score = static_cast<float>(weight);
    }
    std::fill(sum, sum + spec.value_dim, 0.0f);
    for (size_t i = 0; i < scores.size(); ++i) {
      AddScaled(scores[i],
                pages.V(layer, blocks, first + static_cast<int>(i), kv_head),
                spec.value_dim, sum);
    }
    for (int d = 0; d < spec.value_dim; ++d) {
      sum[d] = static_cast<float>(sum[d] / total);
    }
  }
}

}  // namespace penstock
