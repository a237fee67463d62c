#include "common/model/files/testing/weight_exercise.h"

#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/model/files/weight_visitor.h"

namespace penstock {
namespace {

void CheckShape(const TensorView& tensor, std::vector<int64_t> shape) {
  CHECK(tensor.shape == shape) << tensor.name;
}

void CheckAttention(const ModelSpec& spec, const LayerWeights& layer) {
  CheckShape(layer.o, {spec.hidden, spec.attended_width()});
  if (!spec.latent) {
    CheckShape(layer.q, {spec.q_width(), spec.hidden});
    CheckShape(layer.k, {spec.kv_width(), spec.hidden});
    CheckShape(layer.v, {spec.value_width(), spec.hidden});
    CHECK(layer.q_norm.present() == (spec.qk_norm != QkNorm::kNone));
    return;
  }
  const LatentAttentionSpec& latent = *spec.latent;
  CHECK(layer.latent.query_latent.size() == size_t(spec.heads));
  CHECK(layer.latent.value_up.size() == size_t(spec.heads));
  for (int h = 0; h < spec.heads; ++h) {
    CheckShape(layer.latent.query_latent[h], {latent.latent, latent.plain_dim});
    CheckShape(layer.latent.value_up[h], {latent.value_dim, latent.latent});
  }
  CheckShape(layer.latent.kv_down,
             {latent.latent + latent.rotated_dim, spec.hidden});
  CHECK(layer.q.present() == (latent.query_rank == 0));
  CHECK(layer.latent.query_up.present() == (latent.query_rank > 0));
}

void CheckFeedForward(const ModelSpec& spec, bool experts,
                      const LayerWeights& layer) {
  if (!experts) {
    CheckShape(layer.gate, {spec.ffn, spec.hidden});
    CheckShape(layer.up, {spec.ffn, spec.hidden});
    CheckShape(layer.down, {spec.hidden, spec.ffn});
    return;
  }
  const ExpertSpec& mixture = *spec.experts;
  CheckShape(layer.experts.router, {mixture.count, spec.hidden});
  CHECK(layer.experts.gate.size() == size_t(mixture.count));
  CHECK(layer.experts.up.size() == size_t(mixture.count));
  CHECK(layer.experts.down.size() == size_t(mixture.count));
  for (int e = 0; e < mixture.count; ++e) {
    CheckShape(layer.experts.gate[e], {mixture.ffn, spec.hidden});
    CheckShape(layer.experts.up[e], {mixture.ffn, spec.hidden});
    CheckShape(layer.experts.down[e], {spec.hidden, mixture.ffn});
  }
  CHECK(layer.experts.shared_down.present() == (mixture.shared_ffn > 0));
}

}  // namespace

void ExerciseSpec(const ModelSpec& spec) {
  CHECK(spec.vocab_size > 0 && spec.layers > 0 && spec.ffn > 0 &&
        spec.context_length > 0 && spec.hidden > 0);
  CHECK(spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0);
  CHECK(spec.head_dim > 0 && spec.value_dim > 0);
  CHECK(spec.norm_epsilon > 0 && std::isfinite(spec.score_scale));
  CHECK(!spec.ropes.empty() && spec.layer_specs.size() == size_t(spec.layers));
  for (const RopeSpec& rope : spec.ropes) {
    CHECK(rope.dimensions > 0 && rope.dimensions % 2 == 0 &&
          rope.dimensions <= spec.head_dim && rope.base >= 1);
    const std::vector<double> speeds = RopeSpeeds(rope, spec.context_length);
    CHECK(speeds.size() == size_t(rope.dimensions / 2));
    for (double speed : speeds) CHECK(std::isfinite(speed));
  }
  for (const LayerSpec& layer : spec.layer_specs) {
    CHECK(layer.rope >= -1 && layer.rope < static_cast<int>(spec.ropes.size()));
    CHECK(layer.window >= 0 && (!layer.experts || spec.experts));
  }
  if (!spec.experts) return;
  const ExpertSpec& experts = *spec.experts;
  CHECK(experts.used >= 1 && experts.groups >= 1 && experts.groups_used >= 1);
  CHECK(experts.groups_used <= experts.groups &&
        experts.count % experts.groups == 0);
  CHECK(experts.used <= experts.count / experts.groups * experts.groups_used);
}

void ExerciseWeights(const ModelContent& content) {
  const ModelSpec& spec = content.spec;
  const ModelWeights& weights = content.weights;
  CHECK(weights.layers.size() == size_t(spec.layers));
  CheckShape(weights.token_embedding, {spec.vocab_size, spec.hidden});
  CheckShape(weights.output, {spec.vocab_size, spec.hidden});
  for (int i = 0; i < spec.layers; ++i) {
    CheckAttention(spec, weights.layers[i]);
    CheckFeedForward(spec, spec.layer_specs[i].experts, weights.layers[i]);
  }
  VisitTensors(weights, spec.tied_head,
               [](const TensorView& tensor, TensorRole) {
                 std::vector<float> row(tensor.cols());
                 for (int64_t i = 0; i < tensor.rows(); ++i) {
                   DequantizeRow(tensor, i, absl::MakeSpan(row));
                 }
               });
}

}  // namespace penstock
