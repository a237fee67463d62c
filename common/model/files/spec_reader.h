#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/model/files/config_fields.h"
#include "common/model/files/model_family.h"
#include "common/model/model_spec.h"

namespace penstock {

// Far beyond known models; they keep products of two within 63 bits and of
// heads and their width within an int.
inline constexpr IntegerRange kContextRange = {1, 1 << 24};
inline constexpr IntegerRange kWidthRange = {1, 1 << 20};
inline constexpr IntegerRange kWidthOrNoneRange = {0, 1 << 20};
inline constexpr IntegerRange kHeadDimRange = {1, 1 << 14};
inline constexpr IntegerRange kVocabularyRange = {1, 1 << 24};
inline constexpr FloatRange kRopeBaseRange = {1.001, 1e12};
inline constexpr FloatRange kScaleRange = {-1e6, 1e6};
inline constexpr FloatRange kFactorRange = {1.0, 1e6};

// What a format calls the fields that mean the same in all of them. An empty
// name is one that the format does not have.
struct SpecKeys {
  absl::string_view layers, context, hidden, ffn, heads, kv_heads, head_dim,
      value_dim, norm_epsilon;
  absl::string_view score_cap, logit_cap;
  absl::string_view score_scale, embedding_scale, residual_scale, logit_scale;
  absl::string_view experts, experts_used, expert_ffn, shared_experts,
      shared_ffn, expert_scale, normalize_experts, expert_groups,
      expert_groups_used, leading_dense;
};

// Reads all that SpecKeys names into `spec`, with the family's defaults, and
// checks that the numbers fit together. Widths of latent attention, rotations,
// windows and the vocabulary are the caller's: formats differ there.
absl::Status ReadCommonSpec(const ConfigFields& fields, const SpecKeys& keys,
                            const ModelFamily& family, ModelSpec& spec);

// Makes the spec one of latent attention; its widths have been checked.
void UseLatentAttention(const LatentAttentionSpec& latent, ModelSpec& spec);

// kRopeDimensions unless the rotated dimensions are even and within a head.
absl::Status CheckRopeDimensions(const ConfigFields& fields,
                                 absl::string_view key, int dimensions,
                                 int head_dim);

// Gives each layer its window and rotation as the family's periods say. Layers
// with a window use the last of `spec.ropes`, the others the first.
void SetLayerPattern(const ModelFamily& family, int window,
                     int full_attention_period, ModelSpec& spec);

}  // namespace penstock
