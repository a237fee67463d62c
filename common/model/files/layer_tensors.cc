#include "common/model/files/layer_tensors.h"

namespace penstock {

int64_t SizeOf(Extent extent, const ModelSpec& spec) {
  switch (extent) {
    case Extent::kHidden:
      return spec.hidden;
    case Extent::kQuery:
      return spec.q_width();
    case Extent::kKey:
      return spec.kv_width();
    case Extent::kValue:
      return spec.value_width();
    case Extent::kAttended:
      return spec.attended_width();
    case Extent::kHeadDim:
      return spec.head_dim;
    case Extent::kFfn:
      return spec.ffn;
    case Extent::kSharedFfn:
      return spec.experts->shared_ffn;
    case Extent::kExperts:
      return spec.experts->count;
    case Extent::kQueryRank:
      return spec.latent->query_rank;
    case Extent::kLatentQuery:
      return int64_t{spec.heads} * spec.latent->query_dim();
    case Extent::kLatent:
      return spec.latent->latent;
    case Extent::kLatentKey:
      return spec.latent->latent + spec.latent->rotated_dim;
  }
  return 0;
}

bool Belongs(LayersWith layers, const ModelFamily& family,
             const ModelSpec& spec, const LayerSpec& layer) {
  const bool latent = spec.latent.has_value();
  const bool ranked = latent && spec.latent->query_rank > 0;
  switch (layers) {
    case LayersWith::kAll:
      return true;
    case LayersWith::kInputNorms:
      return family.input_norms;
    case LayersWith::kPlainFfnNorm:
      return family.input_norms && !family.output_norms;
    case LayersWith::kFramedFfnNorm:
      return family.input_norms && family.output_norms;
    case LayersWith::kOutputNorms:
      return family.output_norms;
    case LayersWith::kSplitQkv:
      return !latent && !family.fused;
    case LayersWith::kHeadNorms:
      return spec.qk_norm == QkNorm::kPerHead;
    case LayersWith::kWholeNorms:
      return spec.qk_norm == QkNorm::kWhole;
    case LayersWith::kSplitFfn:
      return !layer.experts && !family.fused;
    case LayersWith::kDenseFfn:
      return !layer.experts;
    case LayersWith::kExperts:
      return layer.experts;
    case LayersWith::kSharedExperts:
      return layer.experts && spec.experts->shared_ffn > 0;
    case LayersWith::kLatent:
      return latent;
    case LayersWith::kPlainLatentQuery:
      return latent && !ranked;
    case LayersWith::kRankedLatentQuery:
      return ranked;
  }
  return false;
}

const std::vector<LayerTensor>& LayerTensors() {
  using enum Extent;
  using W = LayerWeights;
  using L = LatentWeights;
  using E = ExpertWeights;
  using In = LayersWith;
  static const auto& tensors = *new std::vector<LayerTensor>{
      {"attn_norm.weight",
       "input_layernorm.weight",
       &W::attention_norm,
       {kHidden},
       In::kInputNorms},
      {"attn_q.weight",
       "self_attn.q_proj.weight",
       &W::q,
       {kQuery, kHidden},
       In::kSplitQkv},
      {"attn_q.bias",
       "self_attn.q_proj.bias",
       &W::q_bias,
       {kQuery},
       In::kSplitQkv,
       true},
      {"attn_k.weight",
       "self_attn.k_proj.weight",
       &W::k,
       {kKey, kHidden},
       In::kSplitQkv},
      {"attn_k.bias",
       "self_attn.k_proj.bias",
       &W::k_bias,
       {kKey},
       In::kSplitQkv,
       true},
      {"attn_v.weight",
       "self_attn.v_proj.weight",
       &W::v,
       {kValue, kHidden},
       In::kSplitQkv},
      {"attn_v.bias",
       "self_attn.v_proj.bias",
       &W::v_bias,
       {kValue},
       In::kSplitQkv,
       true},
      {"attn_q_norm.weight",
       "self_attn.q_norm.weight",
       &W::q_norm,
       {kHeadDim},
       In::kHeadNorms},
      {"attn_k_norm.weight",
       "self_attn.k_norm.weight",
       &W::k_norm,
       {kHeadDim},
       In::kHeadNorms},
      {"attn_q_norm.weight",
       "self_attn.q_norm.weight",
       &W::q_norm,
       {kQuery},
       In::kWholeNorms},
      {"attn_k_norm.weight",
       "self_attn.k_norm.weight",
       &W::k_norm,
       {kKey},
       In::kWholeNorms},
      {"attn_output.weight",
       "self_attn.o_proj.weight",
       &W::o,
       {kHidden, kAttended}},
      {"attn_output.bias",
       "self_attn.o_proj.bias",
       &W::o_bias,
       {kHidden},
       In::kAll,
       true},
      {"post_attention_norm.weight",
       "post_attention_layernorm.weight",
       &W::attention_post_norm,
       {kHidden},
       In::kOutputNorms},
      {"ffn_norm.weight",
       "post_attention_layernorm.weight",
       &W::ffn_norm,
       {kHidden},
       In::kPlainFfnNorm},
      {"ffn_norm.weight",
       "pre_feedforward_layernorm.weight",
       &W::ffn_norm,
       {kHidden},
       In::kFramedFfnNorm},
      {"post_ffw_norm.weight",
       "post_feedforward_layernorm.weight",
       &W::ffn_post_norm,
       {kHidden},
       In::kOutputNorms},
      {"ffn_gate.weight",
       "mlp.gate_proj.weight",
       &W::gate,
       {kFfn, kHidden},
       In::kSplitFfn},
      {"ffn_up.weight",
       "mlp.up_proj.weight",
       &W::up,
       {kFfn, kHidden},
       In::kSplitFfn},
      {"ffn_down.weight",
       "mlp.down_proj.weight",
       &W::down,
       {kHidden, kFfn},
       In::kDenseFfn},
      {"attn_q.weight",
       "self_attn.q_proj.weight",
       &W::q,
       {kLatentQuery, kHidden},
       In::kPlainLatentQuery},
      {"attn_q_a.weight",
       "self_attn.q_a_proj.weight",
       &L::query_down,
       {kQueryRank, kHidden},
       In::kRankedLatentQuery},
      {"attn_q_a_norm.weight",
       "self_attn.q_a_layernorm.weight",
       &L::query_norm,
       {kQueryRank},
       In::kRankedLatentQuery},
      {"attn_q_b.weight",
       "self_attn.q_b_proj.weight",
       &L::query_up,
       {kLatentQuery, kQueryRank},
       In::kRankedLatentQuery},
      {"attn_kv_a_mqa.weight",
       "self_attn.kv_a_proj_with_mqa.weight",
       &L::kv_down,
       {kLatentKey, kHidden},
       In::kLatent},
      {"attn_kv_a_norm.weight",
       "self_attn.kv_a_layernorm.weight",
       &L::kv_norm,
       {kLatent},
       In::kLatent},
      {"exp_probs_b.bias",
       "mlp.gate.e_score_correction_bias",
       &E::choice_bias,
       {kExperts},
       In::kExperts,
       true},
      {"ffn_gate_shexp.weight",
       "mlp.shared_experts.gate_proj.weight",
       &E::shared_gate,
       {kSharedFfn, kHidden},
       In::kSharedExperts},
      {"ffn_up_shexp.weight",
       "mlp.shared_experts.up_proj.weight",
       &E::shared_up,
       {kSharedFfn, kHidden},
       In::kSharedExperts},
      {"ffn_down_shexp.weight",
       "mlp.shared_experts.down_proj.weight",
       &E::shared_down,
       {kHidden, kSharedFfn},
       In::kSharedExperts},
  };
  return tensors;
}

}  // namespace penstock
