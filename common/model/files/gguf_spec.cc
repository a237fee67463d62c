#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/config_fields.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/model_family.h"
#include "common/model/files/spec_reader.h"

namespace penstock {
namespace {

constexpr size_t kMaxNameBytes = 256;

constexpr SpecKeys kKeys = {
    .layers = "block_count",
    .context = "context_length",
    .hidden = "embedding_length",
    .ffn = "feed_forward_length",
    .heads = "attention.head_count",
    .kv_heads = "attention.head_count_kv",
    .head_dim = "attention.key_length",
    .value_dim = "attention.value_length",
    .norm_epsilon = "attention.layer_norm_rms_epsilon",
    .score_cap = "attn_logit_softcapping",
    .logit_cap = "final_logit_softcapping",
    .score_scale = "attention.scale",
    .embedding_scale = "embedding_scale",
    .residual_scale = "residual_scale",
    .logit_scale = "logit_scale",
    .experts = "expert_count",
    .experts_used = "expert_used_count",
    .expert_ffn = "expert_feed_forward_length",
    .shared_experts = "expert_shared_count",
    .shared_ffn = "expert_shared_feed_forward_length",
    .expert_scale = "expert_weights_scale",
    .normalize_experts = "expert_weights_norm",
    .expert_groups = "expert_group_count",
    .expert_groups_used = "expert_group_used_count",
    .leading_dense = "leading_dense_block_count",
};

// The keys of one family: "llama.block_count" is "block_count" here.
class GgufFields final : public ConfigFields {
 public:
  GgufFields(const GgufReader& reader, absl::string_view architecture)
      : metadata_(reader.metadata()),
        errors_(reader.errors()),
        prefix_(absl::StrCat(architecture, ".")) {}

  bool Has(absl::string_view key) const override {
    return !key.empty() && metadata_.Find(Full(key)) != nullptr;
  }
  absl::StatusOr<int64_t> Integer(absl::string_view key,
                                  IntegerRange range) const override {
    return metadata_.Integer(Full(key), range);
  }
  absl::StatusOr<double> Float(absl::string_view key,
                               FloatRange range) const override {
    return metadata_.Float(Full(key), range);
  }
  absl::StatusOr<bool> Bool(absl::string_view key) const override {
    return metadata_.Bool(Full(key));
  }
  absl::StatusOr<std::string> String(absl::string_view key) const override {
    ASSIGN_OR_RETURN(absl::string_view text, metadata_.String(Full(key)));
    return std::string(text);
  }
  absl::Status Error(ModelError error, absl::string_view key, std::string found,
                     std::string expected) const override {
    return errors_.Make(error, {.field = Full(key),
                                .found = std::move(found),
                                .expected = std::move(expected)});
  }

 private:
  std::string Full(absl::string_view key) const {
    return absl::StrCat(prefix_, key);
  }

  const GgufMetadata& metadata_;
  const ModelErrorMaker& errors_;
  const std::string prefix_;
};

class SpecReader {
 public:
  SpecReader(const GgufReader& reader, const TensorMap& tensors,
             const ModelFamily& family)
      : reader_(reader),
        tensors_(tensors),
        metadata_(reader.metadata()),
        fields_(reader, family.gguf_name),
        family_(family) {}

  absl::StatusOr<ModelSpec> Read() {
    RETURN_IF_ERROR(ReadName());
    RETURN_IF_ERROR(ReadCommonSpec(fields_, kKeys, family_, spec_));
    if (spec_.layers == family_.layers_of_wide_scale) {
      spec_.score_scale =
          1.0f / std::sqrt(static_cast<float>(spec_.hidden) / spec_.heads);
    }
    RETURN_IF_ERROR(ReadVocabularySize());
    if (family_.latent) RETURN_IF_ERROR(ReadLatent());
    if (spec_.experts) RETURN_IF_ERROR(ReadGating(*spec_.experts));
    RETURN_IF_ERROR(ReadRope());
    RETURN_IF_ERROR(ReadWindows());
    return std::move(spec_);
  }

 private:
  absl::Status ReadName() {
    absl::string_view stem = reader_.errors().path();
    stem = stem.substr(stem.rfind('/') + 1);  // npos + 1 is 0
    stem = stem.substr(0, stem.rfind('.'));
    ASSIGN_OR_RETURN(absl::string_view name,
                     metadata_.StringOr("general.name", stem));
    if (name.size() > kMaxNameBytes) {
      return reader_.errors().Make(
          ModelError::kValueRange,
          {.field = "general.name",
           .found = absl::StrCat(name.size(), " bytes"),
           .expected = absl::StrCat("at most ", kMaxNameBytes)});
    }
    spec_.name = std::string(name);
    return absl::OkStatus();
  }

  absl::Status ReadVocabularySize() {
    ASSIGN_OR_RETURN(uint64_t tokens,
                     metadata_.ArrayLength("tokenizer.ggml.tokens"));
    ASSIGN_OR_RETURN(int64_t declared,
                     fields_.IntegerOr("vocab_size", {}, tokens));
    if (static_cast<uint64_t>(declared) != tokens || tokens < 1 ||
        tokens > static_cast<uint64_t>(kVocabularyRange.high)) {
      return reader_.errors().Make(
          ModelError::kVocabularySize,
          {.field = "tokenizer.ggml.tokens",
           .found = absl::StrCat(tokens, " tokens"),
           .expected = absl::StrCat(family_.gguf_name, ".vocab_size, which is ",
                                    declared, ", from ", kVocabularyRange.low,
                                    " to ", kVocabularyRange.high)});
    }
    spec_.vocab_size = static_cast<int>(tokens);
    return absl::OkStatus();
  }

  // Newer files describe what the cache holds under the usual keys, and a
  // head's own widths under others; older ones have only those.
  absl::Status ReadLatent() {
    LatentAttentionSpec latent;
    ASSIGN_OR_RETURN(
        latent.query_rank,
        fields_.IntegerOr("attention.q_lora_rank", kWidthOrNoneRange, 0));
    ASSIGN_OR_RETURN(latent.latent,
                     fields_.Integer("attention.kv_lora_rank", kHeadDimRange));
    ASSIGN_OR_RETURN(latent.rotated_dim,
                     fields_.Integer("rope.dimension_count", kHeadDimRange));
    const bool newer = fields_.Has("attention.key_length_mla");
    const char* key_name =
        newer ? "attention.key_length_mla" : "attention.key_length";
    ASSIGN_OR_RETURN(int64_t key, fields_.Integer(key_name, kHeadDimRange));
    ASSIGN_OR_RETURN(latent.value_dim,
                     fields_.Integer(newer ? "attention.value_length_mla"
                                           : "attention.value_length",
                                     kHeadDimRange));
    latent.plain_dim = static_cast<int>(key) - latent.rotated_dim;
    if (latent.plain_dim < 1) {
      return fields_.Error(ModelError::kLatentWidth, key_name,
                           absl::StrCat(key),
                           absl::StrCat("more than the ", latent.rotated_dim,
                                        " dimensions that rotate"));
    }
    UseLatentAttention(latent, spec_);
    return absl::OkStatus();
  }

  absl::Status ReadGating(ExpertSpec& experts) {
    constexpr int64_t kSoftmax = 1, kSigmoid = 2;
    ASSIGN_OR_RETURN(int64_t gating,
                     fields_.IntegerOr("expert_gating_func",
                                       {kSoftmax, kSigmoid}, kSoftmax));
    if (gating == kSigmoid) {
      experts.gating = ExpertGating::kSigmoid;
      experts.group_score = ExpertGroupScore::kSumOfBestTwo;
    }
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    RopeSpec rope;
    rope.pairing = family_.gguf_pairing;
    ASSIGN_OR_RETURN(rope.base, fields_.FloatOr("rope.freq_base",
                                                kRopeBaseRange, rope.base));
    const int most = spec_.latent ? spec_.latent->rotated_dim : spec_.head_dim;
    ASSIGN_OR_RETURN(rope.dimensions, fields_.IntegerOr("rope.dimension_count",
                                                        kHeadDimRange, most));
    RETURN_IF_ERROR(CheckRopeDimensions(fields_, "rope.dimension_count",
                                        rope.dimensions, most));
    RopeSpec local = rope;
    RETURN_IF_ERROR(ReadScaling(rope));
    RETURN_IF_ERROR(ReadDivisors(rope));
    spec_.ropes.push_back(std::move(rope));
    if (family_.local_rope_base > 0) {
      ASSIGN_OR_RETURN(local.base,
                       fields_.FloatOr("rope.freq_base_swa", kRopeBaseRange,
                                       family_.local_rope_base));
      spec_.ropes.push_back(std::move(local));
    }
    return absl::OkStatus();
  }

  absl::Status ReadScaling(RopeSpec& rope) {
    ASSIGN_OR_RETURN(std::string scaling,
                     fields_.StringOr("rope.scaling.type", "none"));
    // The key of older files, which have no type.
    ASSIGN_OR_RETURN(double factor,
                     fields_.FloatOr("rope.scale_linear", kFactorRange, 1.0));
    ASSIGN_OR_RETURN(rope.factor, fields_.FloatOr("rope.scaling.factor",
                                                  {0.0, 1e6}, factor));
    ASSIGN_OR_RETURN(rope.original_context,
                     fields_.IntegerOr("rope.scaling.original_context_length",
                                       kContextRange, spec_.context_length));
    if (scaling == "none" || scaling == "longrope" || scaling == "linear") {
      const bool scaled = scaling == "linear" || factor != 1.0;
      // A factor of 0 is how some converters say "none".
      if (scaled && rope.factor != 0.0f && rope.factor != 1.0f) {
        rope.scaling = RopeScaling::kLinear;
      }
      if (rope.factor == 0.0f) rope.factor = 1.0f;
      ASSIGN_OR_RETURN(
          rope.magnitude,
          fields_.FloatOr("rope.scaling.attn_factor", {1e-3, 1e3}, 1.0));
      return absl::OkStatus();
    }
    if (scaling == "yarn") return ReadYarn(rope);
    return fields_.Error(ModelError::kRopeScaling, "rope.scaling.type",
                         QuoteForError(scaling),
                         "one of \"none\", \"linear\", \"yarn\", \"longrope\"");
  }

  absl::Status ReadYarn(RopeSpec& rope) {
    rope.scaling = RopeScaling::kYarn;
    if (rope.factor < 1.0f) {
      return fields_.Error(ModelError::kValueRange, "rope.scaling.factor",
                           absl::StrCat(rope.factor), "1 or more");
    }
    ASSIGN_OR_RETURN(rope.beta_fast,
                     fields_.FloatOr("rope.scaling.yarn_beta_fast", {1e-3, 1e6},
                                     rope.beta_fast));
    ASSIGN_OR_RETURN(rope.beta_slow,
                     fields_.FloatOr("rope.scaling.yarn_beta_slow", {1e-3, 1e6},
                                     rope.beta_slow));
    ASSIGN_OR_RETURN(
        double magnitude,
        fields_.FloatOr("rope.scaling.attn_factor", {1e-3, 1e3}, 1.0));
    ASSIGN_OR_RETURN(
        double multiplier,
        fields_.FloatOr("rope.scaling.yarn_log_multiplier", {0.0, 10.0}, 0.0));
    const double log_factor = std::log(double{rope.factor});
    if (family_.latent) {
      // There the whole score is scaled, the rotated part no further.
      const double scale = 1.0 + multiplier * log_factor;
      spec_.score_scale *= static_cast<float>(scale * scale);
      rope.magnitude = static_cast<float>(magnitude);
    } else {
      rope.magnitude = static_cast<float>(magnitude * (1.0 + 0.1 * log_factor));
    }
    return absl::OkStatus();
  }

  // Tensors that say how much slower than trained each pair turns.
  absl::Status ReadDivisors(RopeSpec& rope) {
    const char* name = "rope_freqs.weight";
    const bool longrope = tensors_.contains("rope_factors_long.weight");
    if (longrope) {
      name = spec_.context_length > rope.original_context
                 ? "rope_factors_long.weight"
                 : "rope_factors_short.weight";
    }
    auto it = tensors_.find(name);
    if (it == tensors_.end() && !longrope) return absl::OkStatus();
    auto wrong = [&](ModelError error, std::string found,
                     std::string expected) {
      return reader_.errors().Make(
          error, {.field = absl::StrCat("tensor ", QuoteForError(name)),
                  .found = std::move(found),
                  .expected = std::move(expected)});
    };
    if (it == tensors_.end()) {
      return wrong(ModelError::kMissingTensor, "no such tensor",
                   "it beside the long factors");
    }
    const TensorView* tensor = &it->second;
    if (tensor->shape.size() != 1 || tensor->cols() != rope.dimensions / 2) {
      return wrong(
          ModelError::kTensorShape, absl::StrCat(tensor->cols(), " numbers"),
          absl::StrCat("one for each of ", rope.dimensions / 2, " pairs"));
    }
    if (rope.scaling != RopeScaling::kNone) {
      return wrong(ModelError::kRopeScaling, "it beside another scaling",
                   "one of them");
    }
    rope.divisors.resize(tensor->cols());
    DequantizeRow(*tensor, 0, absl::MakeSpan(rope.divisors));
    for (float divisor : rope.divisors) {
      if (!(divisor >= 1e-6f && divisor <= 1e6f)) {
        return wrong(ModelError::kValueRange, absl::StrCat(divisor),
                     "divisors from 1e-6 to 1e6");
      }
    }
    rope.scaling = RopeScaling::kDivisors;
    return absl::OkStatus();
  }

  absl::Status ReadWindows() {
    constexpr absl::string_view kKey = "attention.sliding_window";
    int period = family_.full_attention_period;
    ASSIGN_OR_RETURN(int64_t window,
                     fields_.IntegerOr(kKey, {0, kContextRange.high},
                                       family_.default_window));
    // OLMo 3 calls itself "olmo2", and says here that it is not.
    if (period == 0 && window > 0 && window < spec_.context_length) {
      return fields_.Error(ModelError::kArchitecture, kKey,
                           absl::StrCat(window),
                           "no window in models of this architecture");
    }
    if (period == 0) window = 0;
    SetLayerPattern(family_, static_cast<int>(window), period, spec_);
    return absl::OkStatus();
  }

  const GgufReader& reader_;
  const TensorMap& tensors_;
  const GgufMetadata& metadata_;
  const GgufFields fields_;
  const ModelFamily& family_;
  ModelSpec spec_;
};

}  // namespace

absl::StatusOr<ModelSpec> ReadGgufSpec(const GgufReader& reader,
                                       const TensorMap& tensors,
                                       const ModelFamily& family) {
  return SpecReader(reader, tensors, family).Read();
}

absl::StatusOr<const ModelFamily*> ReadGgufFamily(const GgufReader& reader) {
  constexpr absl::string_view kKey = "general.architecture";
  ASSIGN_OR_RETURN(absl::string_view name, reader.metadata().String(kKey));
  if (const ModelFamily* family = FamilyOfGguf(name)) return family;
  return reader.errors().Make(ModelError::kArchitecture,
                              {.field = std::string(kKey),
                               .found = QuoteForError(name),
                               .expected = KnownGgufFamilies()});
}

}  // namespace penstock
