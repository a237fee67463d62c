#include "common/model/files/spec_reader.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr IntegerRange kLayers = {1, 4096};
constexpr IntegerRange kFfn = {1, 1 << 24};
constexpr IntegerRange kHeads = {1, 1 << 14};
constexpr IntegerRange kExperts = {0, 1 << 14};
constexpr FloatRange kEpsilon = {1e-12, 1e-1};
constexpr FloatRange kCap = {0.0, 1e6};

class CommonReader {
 public:
  CommonReader(const ConfigFields& fields, const SpecKeys& keys,
               const ModelFamily& family, ModelSpec& spec)
      : fields_(fields), keys_(keys), family_(family), spec_(spec) {}

  absl::Status Read() {
    spec_.architecture = std::string(family_.gguf_name);
    spec_.activation = family_.activation;
    spec_.qk_norm = family_.qk_norm;
    RETURN_IF_ERROR(ReadSizes());
    RETURN_IF_ERROR(ReadHeads());
    RETURN_IF_ERROR(ReadScales());
    return ReadExperts();
  }

 private:
  absl::Status ReadSizes() {
    ASSIGN_OR_RETURN(spec_.layers, fields_.Integer(keys_.layers, kLayers));
    spec_.layer_specs.resize(spec_.layers);
    ASSIGN_OR_RETURN(spec_.context_length,
                     fields_.Integer(keys_.context, kContextRange));
    ASSIGN_OR_RETURN(spec_.hidden, fields_.Integer(keys_.hidden, kWidthRange));
    ASSIGN_OR_RETURN(spec_.ffn, fields_.Integer(keys_.ffn, kFfn));
    ASSIGN_OR_RETURN(spec_.norm_epsilon,
                     fields_.Float(keys_.norm_epsilon, kEpsilon));
    return absl::OkStatus();
  }

  absl::Status ReadHeads() {
    ASSIGN_OR_RETURN(spec_.heads, fields_.Integer(keys_.heads, kHeads));
    if (family_.latent) return absl::OkStatus();
    ASSIGN_OR_RETURN(spec_.kv_heads,
                     fields_.IntegerOr(keys_.kv_heads, kHeads, spec_.heads));
    if (spec_.heads % spec_.kv_heads != 0) {
      return fields_.Error(
          ModelError::kHeadCount, keys_.kv_heads, absl::StrCat(spec_.kv_heads),
          absl::StrCat("a divisor of the ", spec_.heads, " heads"));
    }
    if (!fields_.Has(keys_.head_dim) && spec_.hidden % spec_.heads != 0) {
      return fields_.Error(
          ModelError::kHeadCount, keys_.heads, absl::StrCat(spec_.heads),
          absl::StrCat("a divisor of the width ", spec_.hidden));
    }
    ASSIGN_OR_RETURN(spec_.head_dim,
                     fields_.IntegerOr(keys_.head_dim, kHeadDimRange,
                                       spec_.hidden / spec_.heads));
    if (spec_.head_dim < 1) {
      return fields_.Error(ModelError::kHeadCount, keys_.heads,
                           absl::StrCat(spec_.heads),
                           absl::StrCat("at most the width ", spec_.hidden));
    }
    ASSIGN_OR_RETURN(
        spec_.value_dim,
        fields_.IntegerOr(keys_.value_dim, kHeadDimRange, spec_.head_dim));
    spec_.score_scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim));
    return absl::OkStatus();
  }

  absl::Status ReadScales() {
    ASSIGN_OR_RETURN(spec_.score_cap,
                     fields_.FloatOr(keys_.score_cap, kCap, family_.score_cap));
    ASSIGN_OR_RETURN(spec_.logit_cap,
                     fields_.FloatOr(keys_.logit_cap, kCap, family_.logit_cap));
    if (family_.root_embedding_scale) {
      spec_.embedding_scale = std::sqrt(static_cast<float>(spec_.hidden));
    }
    if (!family_.scales) return absl::OkStatus();
    ASSIGN_OR_RETURN(spec_.score_scale,
                     fields_.FloatOr(keys_.score_scale, kScaleRange, 1.0));
    ASSIGN_OR_RETURN(spec_.embedding_scale,
                     fields_.FloatOr(keys_.embedding_scale, kScaleRange, 1.0));
    ASSIGN_OR_RETURN(spec_.residual_scale,
                     fields_.FloatOr(keys_.residual_scale, kScaleRange, 1.0));
    // The file has what logits are divided by.
    ASSIGN_OR_RETURN(double divisor,
                     fields_.FloatOr(keys_.logit_scale, kScaleRange, 1.0));
    if (divisor == 0.0) {
      return fields_.Error(ModelError::kValueRange, keys_.logit_scale, "0",
                           "another number");
    }
    spec_.logit_scale = static_cast<float>(1.0 / divisor);
    return absl::OkStatus();
  }

  absl::Status ReadExperts() {
    if (family_.experts == ExpertLayout::kNone) return absl::OkStatus();
    ASSIGN_OR_RETURN(int64_t count,
                     fields_.IntegerOr(keys_.experts, kExperts, 0));
    if (count == 0) return absl::OkStatus();
    ExpertSpec experts;
    experts.count = static_cast<int>(count);
    ASSIGN_OR_RETURN(experts.used,
                     fields_.Integer(keys_.experts_used, {1, count}));
    ASSIGN_OR_RETURN(experts.ffn,
                     fields_.IntegerOr(keys_.expert_ffn, kFfn, spec_.ffn));
    ASSIGN_OR_RETURN(int64_t shared,
                     fields_.IntegerOr(keys_.shared_experts, {0, 64}, 0));
    ASSIGN_OR_RETURN(experts.shared_ffn,
                     fields_.IntegerOr(keys_.shared_ffn, {0, 1 << 24},
                                       shared * experts.ffn));
    ASSIGN_OR_RETURN(experts.scale,
                     fields_.FloatOr(keys_.expert_scale, kScaleRange, 1.0));
    // Written by some converters where there is no scale.
    if (experts.scale == 0.0f) experts.scale = 1.0f;
    ASSIGN_OR_RETURN(
        experts.normalize,
        fields_.BoolOr(keys_.normalize_experts, family_.normalize_experts));
    RETURN_IF_ERROR(ReadGroups(experts));
    ASSIGN_OR_RETURN(int64_t dense, fields_.IntegerOr(keys_.leading_dense,
                                                      {0, spec_.layers}, 0));
    for (int i = static_cast<int>(dense); i < spec_.layers; ++i) {
      spec_.layer_specs[i].experts = true;
    }
    spec_.experts = experts;
    return absl::OkStatus();
  }

  absl::Status ReadGroups(ExpertSpec& experts) {
    ASSIGN_OR_RETURN(experts.groups, fields_.IntegerOr(keys_.expert_groups,
                                                       {0, experts.count}, 1));
    if (experts.groups == 0) experts.groups = 1;
    if (experts.count % experts.groups != 0) {
      return fields_.Error(
          ModelError::kExpertCount, keys_.expert_groups,
          absl::StrCat(experts.groups),
          absl::StrCat("a divisor of the ", experts.count, " experts"));
    }
    ASSIGN_OR_RETURN(experts.groups_used,
                     fields_.IntegerOr(keys_.expert_groups_used,
                                       {0, experts.groups}, experts.groups));
    if (experts.groups_used == 0) experts.groups_used = experts.groups;
    const int eligible = experts.count / experts.groups * experts.groups_used;
    if (experts.used > eligible) {
      return fields_.Error(
          ModelError::kExpertCount, keys_.experts_used,
          absl::StrCat(experts.used),
          absl::StrCat("at most the ", eligible, " of the chosen groups"));
    }
    return absl::OkStatus();
  }

  const ConfigFields& fields_;
  const SpecKeys& keys_;
  const ModelFamily& family_;
  ModelSpec& spec_;
};

}  // namespace

absl::Status ReadCommonSpec(const ConfigFields& fields, const SpecKeys& keys,
                            const ModelFamily& family, ModelSpec& spec) {
  return CommonReader(fields, keys, family, spec).Read();
}

void UseLatentAttention(const LatentAttentionSpec& latent, ModelSpec& spec) {
  spec.latent = latent;
  spec.kv_heads = 1;
  spec.head_dim = latent.latent + latent.rotated_dim;
  spec.value_dim = latent.latent;
  spec.score_scale = 1.0f / std::sqrt(static_cast<float>(latent.query_dim()));
}

absl::Status CheckRopeDimensions(const ConfigFields& fields,
                                 absl::string_view key, int dimensions,
                                 int head_dim) {
  if (dimensions > 0 && dimensions <= head_dim && dimensions % 2 == 0) {
    return absl::OkStatus();
  }
  return fields.Error(
      ModelError::kRopeDimensions, key, absl::StrCat(dimensions),
      absl::StrCat("an even number up to the head's ", head_dim));
}

void SetLayerPattern(const ModelFamily& family, int window,
                     int full_attention_period, ModelSpec& spec) {
  const int period = full_attention_period;
  for (int i = 0; i < spec.layers; ++i) {
    LayerSpec& layer = spec.layer_specs[i];
    const bool full = period == 0 || (period > 1 && (i + 1) % period == 0);
    layer.window = full ? 0 : window;
    layer.rope = full ? 0 : static_cast<int>(spec.ropes.size()) - 1;
    if (family.no_rope_period > 0 && (i + 1) % family.no_rope_period == 0) {
      layer.rope = -1;
    }
  }
}

}  // namespace penstock
