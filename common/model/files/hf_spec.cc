#include "common/model/files/hf_spec.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/hf_rope.h"
#include "common/model/files/spec_reader.h"

namespace penstock {
namespace {

constexpr SpecKeys kKeys = {
    .layers = "num_hidden_layers",
    .context = "max_position_embeddings",
    .hidden = "hidden_size",
    .ffn = "intermediate_size",
    .heads = "num_attention_heads",
    .kv_heads = "num_key_value_heads",
    .head_dim = "head_dim",
    .value_dim = "",
    .norm_epsilon = "rms_norm_eps",
    .score_cap = "attn_logit_softcapping",
    .logit_cap = "final_logit_softcapping",
    .score_scale = "attention_multiplier",
    .embedding_scale = "embedding_multiplier",
    .residual_scale = "residual_multiplier",
    .logit_scale = "logits_scaling",
    .experts = "num_local_experts",
    .experts_used = "num_experts_per_tok",
    .expert_ffn = "moe_intermediate_size",
    .shared_experts = "n_shared_experts",
    .shared_ffn = "",
    .expert_scale = "routed_scaling_factor",
    .normalize_experts = "norm_topk_prob",
    .expert_groups = "n_group",
    .expert_groups_used = "topk_group",
    .leading_dense = "first_k_dense_replace",
};

class SpecReader {
 public:
  SpecReader(const JsonConfig& config, const ModelFamily& family)
      : config_(config), family_(family) {}

  absl::StatusOr<ModelSpec> Read(bool tied_by_default) {
    ASSIGN_OR_RETURN(SpecKeys keys, Keys());
    RETURN_IF_ERROR(CheckKnownOptions());
    RETURN_IF_ERROR(ReadCommonSpec(config_, keys, family_, spec_));
    ASSIGN_OR_RETURN(spec_.vocab_size,
                     config_.Integer("vocab_size", kVocabularyRange));
    ASSIGN_OR_RETURN(spec_.tied_head,
                     config_.BoolOr("tie_word_embeddings", tied_by_default));
    spec_.norm_offset = family_.hf_norm_offset;
    if (config_.Has("query_pre_attn_scalar")) {
      ASSIGN_OR_RETURN(double scalar,
                       config_.Float("query_pre_attn_scalar", {1e-3, 1e6}));
      spec_.score_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    }
    if (family_.latent) RETURN_IF_ERROR(ReadLatent());
    if (spec_.experts) RETURN_IF_ERROR(ReadExpertOptions(*spec_.experts));
    RETURN_IF_ERROR(ReadRope());
    RETURN_IF_ERROR(ReadLayers());
    return std::move(spec_);
  }

 private:
  // Names that differ between families.
  absl::StatusOr<SpecKeys> Keys() const {
    SpecKeys keys = kKeys;
    for (absl::string_view key : {"n_routed_experts", "num_experts"}) {
      if (config_.Has(key)) keys.experts = key;
    }
    ASSIGN_OR_RETURN(std::string method, config_.StringOr("topk_method", ""));
    if (method == "greedy") keys.expert_groups = keys.expert_groups_used = "";
    return keys;
  }

  // Options whose other values would change the forward pass.
  absl::Status CheckKnownOptions() const {
    const char* key =
        config_.Has("hidden_activation") ? "hidden_activation" : "hidden_act";
    const bool silu = family_.activation == Activation::kSilu;
    const char* expected = silu ? "silu" : "gelu_pytorch_tanh";
    ASSIGN_OR_RETURN(std::string activation, config_.StringOr(key, expected));
    if (activation != expected) {
      return config_.Error(ModelError::kArchitecture, key,
                           QuoteForError(activation), QuoteForError(expected));
    }
    for (const char* unknown : {"clip_qkv", "quantization_config"}) {
      if (config_.Has(unknown)) {
        return config_.Error(ModelError::kArchitecture, unknown,
                             "a value that this build does not know", "none");
      }
    }
    constexpr absl::string_view kBidirectional = "use_bidirectional_attention";
    ASSIGN_OR_RETURN(bool bidirectional, config_.BoolOr(kBidirectional, false));
    if (bidirectional) {
      return config_.Error(ModelError::kArchitecture, kBidirectional, "true",
                           "false: a model that generates");
    }
    ASSIGN_OR_RETURN(int64_t frequency,
                     config_.IntegerOr("moe_layer_freq", {0, 1 << 20}, 1));
    if (frequency != 1) {
      return config_.Error(ModelError::kArchitecture, "moe_layer_freq",
                           absl::StrCat(frequency), "1");
    }
    return absl::OkStatus();
  }

  absl::Status ReadLatent() {
    LatentAttentionSpec latent;
    ASSIGN_OR_RETURN(latent.query_rank,
                     config_.IntegerOr("q_lora_rank", kWidthOrNoneRange, 0));
    ASSIGN_OR_RETURN(latent.latent,
                     config_.Integer("kv_lora_rank", kHeadDimRange));
    ASSIGN_OR_RETURN(latent.plain_dim,
                     config_.Integer("qk_nope_head_dim", kHeadDimRange));
    ASSIGN_OR_RETURN(latent.rotated_dim,
                     config_.Integer("qk_rope_head_dim", kHeadDimRange));
    ASSIGN_OR_RETURN(latent.value_dim,
                     config_.Integer("v_head_dim", kHeadDimRange));
    UseLatentAttention(latent, spec_);
    return absl::OkStatus();
  }

  absl::Status ReadExpertOptions(ExpertSpec& experts) {
    // DeepSeek-V3 gates by sigmoid, whether or not its file says so.
    const bool sigmoid = family_.latent && family_.normalize_experts;
    ASSIGN_OR_RETURN(
        std::string gating,
        config_.StringOr("scoring_func", sigmoid ? "sigmoid" : "softmax"));
    if (gating != "sigmoid" && gating != "softmax") {
      return config_.Error(ModelError::kArchitecture, "scoring_func",
                           QuoteForError(gating), "\"softmax\" or \"sigmoid\"");
    }
    if (gating == "sigmoid") {
      experts.gating = ExpertGating::kSigmoid;
      experts.group_score = ExpertGroupScore::kSumOfBestTwo;
    }
    // Qwen3: some layers may stay dense.
    ASSIGN_OR_RETURN(int64_t step,
                     config_.IntegerOr("decoder_sparse_step", {1, 1 << 20}, 1));
    std::vector<int64_t> dense;
    if (config_.Has("mlp_only_layers")) {
      ASSIGN_OR_RETURN(dense,
                       config_.Integers("mlp_only_layers", {0, 1 << 20}));
    }
    for (int i = 0; i < spec_.layers; ++i) {
      const bool listed =
          std::find(dense.begin(), dense.end(), i) != dense.end();
      if (listed || (i + 1) % step != 0) spec_.layer_specs[i].experts = false;
    }
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    RopePairing pairing = family_.hf_pairing;
    ASSIGN_OR_RETURN(bool interleave,
                     config_.BoolOr("rope_interleave",
                                    pairing == RopePairing::kInterleaved));
    if (family_.latent && !interleave) pairing = RopePairing::kHalves;
    const int most = spec_.latent ? spec_.latent->rotated_dim : spec_.head_dim;
    ASSIGN_OR_RETURN(HuggingFaceRope rope,
                     ReadHuggingFaceRope(config_, most, spec_.context_length,
                                         pairing, family_.latent));
    spec_.score_scale =
        static_cast<float>(spec_.score_scale * rope.score_factor);
    if (family_.local_rope_base > 0 && !rope.has_local) {
      rope.local.pairing = pairing;
      rope.local.dimensions = most;
      rope.local.base = family_.local_rope_base;
      rope.has_local = true;
    }
    spec_.ropes.push_back(std::move(rope.global));
    if (rope.has_local) spec_.ropes.push_back(std::move(rope.local));
    return absl::OkStatus();
  }

  absl::Status ReadLayers() {
    ASSIGN_OR_RETURN(
        int64_t window,
        config_.IntegerOr("sliding_window", {0, kContextRange.high}, 0));
    ASSIGN_OR_RETURN(bool windows, config_.BoolOr("use_sliding_window", true));
    if (!windows) window = 0;
    int64_t period = family_.full_attention_period;
    for (const char* key :
         {"sliding_window_pattern", "_sliding_window_pattern"}) {
      ASSIGN_OR_RETURN(period, config_.IntegerOr(key, {1, 1 << 20}, period));
    }
    SetLayerPattern(family_, static_cast<int>(window), static_cast<int>(period),
                    spec_);
    RETURN_IF_ERROR(ReadWindowedLayers(static_cast<int>(window)));
    return ReadLayersWithoutRope();
  }

  // What the file says of single layers goes before the family's pattern.
  absl::Status ReadWindowedLayers(int window) {
    if (config_.Has("layer_types")) {
      ASSIGN_OR_RETURN(std::vector<std::string> types,
                       config_.Strings("layer_types"));
      RETURN_IF_ERROR(CheckCount("layer_types", types.size()));
      for (int i = 0; i < spec_.layers; ++i) {
        const bool sliding = types[i] == "sliding_attention";
        if (!sliding && types[i] != "full_attention") {
          return config_.Error(ModelError::kArchitecture, "layer_types",
                               QuoteForError(types[i]),
                               "\"full_attention\" or \"sliding_attention\"");
        }
        SetWindow(i, sliding ? window : 0, sliding);
      }
    } else if (config_.Has("max_window_layers") && window > 0) {
      ASSIGN_OR_RETURN(int64_t first,
                       config_.Integer("max_window_layers", {0, 1 << 20}));
      for (int i = 0; i < spec_.layers; ++i) {
        SetWindow(i, i >= first ? window : 0, i >= first);
      }
    }
    return absl::OkStatus();
  }

  void SetWindow(int layer, int window, bool sliding) {
    spec_.layer_specs[layer].window = window;
    spec_.layer_specs[layer].rope =
        sliding ? static_cast<int>(spec_.ropes.size()) - 1 : 0;
  }

  absl::Status ReadLayersWithoutRope() {
    if (family_.no_rope_period == 0) return absl::OkStatus();
    std::vector<int64_t> rotates(spec_.layers, 1);
    if (config_.Has("no_rope_layers")) {
      ASSIGN_OR_RETURN(rotates, config_.Integers("no_rope_layers", {0, 1}));
      RETURN_IF_ERROR(CheckCount("no_rope_layers", rotates.size()));
    } else {
      ASSIGN_OR_RETURN(int64_t interval,
                       config_.IntegerOr("no_rope_layer_interval", {1, 1 << 20},
                                         family_.no_rope_period));
      for (int i = 0; i < spec_.layers; ++i) rotates[i] = (i + 1) % interval;
    }
    for (int i = 0; i < spec_.layers; ++i) {
      spec_.layer_specs[i].rope = rotates[i] != 0 ? 0 : -1;
    }
    return absl::OkStatus();
  }

  absl::Status CheckCount(absl::string_view key, size_t count) const {
    if (count == static_cast<size_t>(spec_.layers)) return absl::OkStatus();
    return config_.Error(
        ModelError::kValueRange, key, absl::StrCat(count, " elements"),
        absl::StrCat("one for each of ", spec_.layers, " layers"));
  }

  const JsonConfig& config_;
  const ModelFamily& family_;
  ModelSpec spec_;
};

}  // namespace

absl::StatusOr<const ModelFamily*> ReadHuggingFaceFamily(
    const JsonConfig& config) {
  ASSIGN_OR_RETURN(std::string name, config.String("model_type"));
  if (const ModelFamily* family = FamilyOfHuggingFace(name)) return family;
  return config.Error(ModelError::kArchitecture, "model_type",
                      QuoteForError(name), KnownHuggingFaceFamilies());
}

absl::StatusOr<ModelSpec> ReadHuggingFaceSpec(const JsonConfig& config,
                                              const ModelFamily& family,
                                              bool tied_by_default) {
  return SpecReader(config, family).Read(tied_by_default);
}

}  // namespace penstock
