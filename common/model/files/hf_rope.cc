#include "common/model/files/hf_rope.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/spec_reader.h"

namespace penstock {
namespace {

constexpr FloatRange kRotations = {1e-3, 1e6};
constexpr FloatRange kMagnitude = {1e-3, 1e3};

// YaRN's growth of attention with the factor.
double Growth(double factor, double weight) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

// Reads one rotation. `rope`: the object with the scaling, if there is one.
// `config`: the whole file, which has what older files keep beside it.
class RotationReader {
 public:
  RotationReader(const JsonConfig& config, const JsonConfig* rope,
                 int context_length, bool latent)
      : config_(config),
        rope_(rope == nullptr ? config : *rope),
        scaled_(rope != nullptr),
        context_length_(context_length),
        latent_(latent) {}

  absl::StatusOr<RopeSpec> Read(int head_dim, RopePairing pairing) {
    spec_.pairing = pairing;
    const JsonConfig& with_base = rope_.Has("rope_theta") ? rope_ : config_;
    ASSIGN_OR_RETURN(spec_.base, with_base.FloatOr("rope_theta", kRopeBaseRange,
                                                   spec_.base));
    const JsonConfig& with_part =
        rope_.Has("partial_rotary_factor") ? rope_ : config_;
    ASSIGN_OR_RETURN(double part, with_part.FloatOr("partial_rotary_factor",
                                                    {0.0, 1.0}, 1.0));
    spec_.dimensions = latent_ ? head_dim : static_cast<int>(head_dim * part);
    RETURN_IF_ERROR(CheckRopeDimensions(config_, "partial_rotary_factor",
                                        spec_.dimensions, head_dim));
    if (scaled_) RETURN_IF_ERROR(ReadScaling());
    return std::move(spec_);
  }

  double score_factor() const { return score_factor_; }

 private:
  absl::Status ReadScaling() {
    const char* key = rope_.Has("rope_type") ? "rope_type" : "type";
    ASSIGN_OR_RETURN(std::string type, rope_.StringOr(key, "default"));
    if (type == "default") return absl::OkStatus();
    if (type == "longrope" || type == "su") return ReadLongRope();
    if (type == "yarn") return ReadYarn();
    if (type != "linear" && type != "dynamic" && type != "llama3") {
      return rope_.Error(ModelError::kRopeScaling, key, QuoteForError(type),
                         "one of \"default\", \"linear\", \"dynamic\", "
                         "\"yarn\", \"longrope\", \"llama3\"");
    }
    ASSIGN_OR_RETURN(spec_.factor, rope_.Float("factor", kFactorRange));
    if (type == "linear") {
      spec_.scaling = RopeScaling::kLinear;
      return absl::OkStatus();
    }
    if (type == "dynamic") {
      spec_.scaling = RopeScaling::kDynamicNtk;
      spec_.original_context = context_length_;
      if (spec_.dimensions > 2) return absl::OkStatus();
      return rope_.Error(ModelError::kRopeDimensions, key,
                         absl::StrCat(spec_.dimensions, " dimensions"),
                         "more than 2 for this type");
    }
    return ReadLlama3();
  }

  absl::Status ReadLlama3() {
    spec_.scaling = RopeScaling::kLlama3;
    ASSIGN_OR_RETURN(
        spec_.original_context,
        rope_.Integer("original_max_position_embeddings", kContextRange));
    ASSIGN_OR_RETURN(spec_.low_frequency_factor,
                     rope_.FloatOr("low_freq_factor", kRotations,
                                   spec_.low_frequency_factor));
    ASSIGN_OR_RETURN(spec_.high_frequency_factor,
                     rope_.FloatOr("high_freq_factor", kRotations,
                                   spec_.high_frequency_factor));
    if (spec_.high_frequency_factor > spec_.low_frequency_factor) {
      return absl::OkStatus();
    }
    return rope_.Error(
        ModelError::kValueRange, "high_freq_factor",
        absl::StrCat(spec_.high_frequency_factor),
        absl::StrCat("more than the low ", spec_.low_frequency_factor));
  }

  absl::Status ReadOriginalContext() {
    constexpr char kKey[] = "original_max_position_embeddings";
    const JsonConfig& with_key = rope_.Has(kKey) ? rope_ : config_;
    ASSIGN_OR_RETURN(
        spec_.original_context,
        with_key.IntegerOr(kKey, {2, kContextRange.high}, context_length_));
    return absl::OkStatus();
  }

  absl::Status ReadYarn() {
    spec_.scaling = RopeScaling::kYarn;
    RETURN_IF_ERROR(ReadOriginalContext());
    ASSIGN_OR_RETURN(double factor, rope_.FloatOr("factor", kFactorRange,
                                                  double{1} * context_length_ /
                                                      spec_.original_context));
    spec_.factor = static_cast<float>(factor);
    ASSIGN_OR_RETURN(spec_.beta_fast,
                     rope_.FloatOr("beta_fast", kRotations, spec_.beta_fast));
    ASSIGN_OR_RETURN(spec_.beta_slow,
                     rope_.FloatOr("beta_slow", kRotations, spec_.beta_slow));
    ASSIGN_OR_RETURN(bool truncate, rope_.BoolOr("truncate", true));
    if (!truncate) {
      return rope_.Error(ModelError::kRopeScaling, "truncate", "false", "true");
    }
    ASSIGN_OR_RETURN(double weight, rope_.FloatOr("mscale", {0.0, 10.0}, 0.0));
    ASSIGN_OR_RETURN(double all_weight,
                     rope_.FloatOr("mscale_all_dim", {0.0, 10.0}, 0.0));
    double magnitude = Growth(factor, 1.0);
    if (weight > 0 && all_weight > 0) {
      magnitude = Growth(factor, weight) / Growth(factor, all_weight);
    }
    ASSIGN_OR_RETURN(spec_.magnitude,
                     rope_.FloatOr("attention_factor", kMagnitude, magnitude));
    if (latent_ && all_weight > 0) {
      score_factor_ = std::pow(Growth(factor, all_weight), 2);
    }
    return absl::OkStatus();
  }

  // The factors for the model's context, whatever the length of a text: what
  // is cached of a text must not depend on what will follow it.
  absl::Status ReadLongRope() {
    RETURN_IF_ERROR(ReadOriginalContext());
    spec_.scaling = RopeScaling::kDivisors;
    const bool longer = context_length_ > spec_.original_context;
    const char* key = longer ? "long_factor" : "short_factor";
    ASSIGN_OR_RETURN(std::vector<double> divisors,
                     rope_.Floats(key, {1e-6, 1e6}));
    if (static_cast<int>(divisors.size()) != spec_.dimensions / 2) {
      return rope_.Error(
          ModelError::kRopeDimensions, key,
          absl::StrCat(divisors.size(), " factors"),
          absl::StrCat("one for each of ", spec_.dimensions / 2, " pairs"));
    }
    spec_.divisors.assign(divisors.begin(), divisors.end());
    const double original = spec_.original_context;
    ASSIGN_OR_RETURN(double factor, rope_.FloatOr("factor", kFactorRange,
                                                  context_length_ / original));
    const double magnitude =
        factor <= 1.0 ? 1.0
                      : std::sqrt(1.0 + std::log(factor) / std::log(original));
    ASSIGN_OR_RETURN(spec_.magnitude,
                     rope_.FloatOr("attention_factor", kMagnitude, magnitude));
    return absl::OkStatus();
  }

  const JsonConfig& config_;
  const JsonConfig& rope_;
  const bool scaled_;
  const int context_length_;
  const bool latent_;
  RopeSpec spec_;
  double score_factor_ = 1.0;
};

}  // namespace

absl::StatusOr<HuggingFaceRope> ReadHuggingFaceRope(const JsonConfig& config,
                                                    int head_dim,
                                                    int context_length,
                                                    RopePairing pairing,
                                                    bool latent) {
  std::optional<JsonConfig> rope, local;
  ASSIGN_OR_RETURN(auto parameters, config.Object("rope_parameters"));
  if (parameters) {
    ASSIGN_OR_RETURN(auto full, parameters->Object("full_attention"));
    ASSIGN_OR_RETURN(auto sliding, parameters->Object("sliding_attention"));
    if (full) {
      rope.emplace(*full);
    } else {
      rope.emplace(*parameters);
    }
    if (full && sliding) local.emplace(*sliding);
  } else {
    ASSIGN_OR_RETURN(auto scaling, config.Object("rope_scaling"));
    if (scaling) rope.emplace(*scaling);
  }
  HuggingFaceRope result;
  RotationReader reader(config, rope ? &*rope : nullptr, context_length,
                        latent);
  ASSIGN_OR_RETURN(result.global, reader.Read(head_dim, pairing));
  result.score_factor = reader.score_factor();
  if (local) {
    RotationReader local_reader(config, &*local, context_length, latent);
    ASSIGN_OR_RETURN(result.local, local_reader.Read(head_dim, pairing));
    result.has_local = true;
  } else if (config.Has("rope_local_base_freq")) {
    result.local.pairing = pairing;
    result.local.dimensions = head_dim;
    ASSIGN_OR_RETURN(result.local.base,
                     config.Float("rope_local_base_freq", kRopeBaseRange));
    result.has_local = true;
  }
  return result;
}

}  // namespace penstock
