#include "common/rpc/sampling_proto.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/wire_check.h"

namespace penstock {
namespace {

v1::SamplerStage ToProto(SamplerStage stage) {
  switch (stage) {
    case SamplerStage::kPenalties:
      return v1::SAMPLER_STAGE_PENALTIES;
    case SamplerStage::kDry:
      return v1::SAMPLER_STAGE_DRY;
    case SamplerStage::kTopNSigma:
      return v1::SAMPLER_STAGE_TOP_N_SIGMA;
    case SamplerStage::kTopK:
      return v1::SAMPLER_STAGE_TOP_K;
    case SamplerStage::kTypicalP:
      return v1::SAMPLER_STAGE_TYPICAL_P;
    case SamplerStage::kTopP:
      return v1::SAMPLER_STAGE_TOP_P;
    case SamplerStage::kMinP:
      return v1::SAMPLER_STAGE_MIN_P;
    case SamplerStage::kXtc:
      return v1::SAMPLER_STAGE_XTC;
    case SamplerStage::kTemperature:
      return v1::SAMPLER_STAGE_TEMPERATURE;
  }
  CHECK(false) << "sampler stage " << static_cast<int>(stage);
  return v1::SAMPLER_STAGE_UNSPECIFIED;
}

absl::StatusOr<SamplerStage> FromProto(int stage) {
  switch (stage) {
    case v1::SAMPLER_STAGE_PENALTIES:
      return SamplerStage::kPenalties;
    case v1::SAMPLER_STAGE_DRY:
      return SamplerStage::kDry;
    case v1::SAMPLER_STAGE_TOP_N_SIGMA:
      return SamplerStage::kTopNSigma;
    case v1::SAMPLER_STAGE_TOP_K:
      return SamplerStage::kTopK;
    case v1::SAMPLER_STAGE_TYPICAL_P:
      return SamplerStage::kTypicalP;
    case v1::SAMPLER_STAGE_TOP_P:
      return SamplerStage::kTopP;
    case v1::SAMPLER_STAGE_MIN_P:
      return SamplerStage::kMinP;
    case v1::SAMPLER_STAGE_XTC:
      return SamplerStage::kXtc;
    case v1::SAMPLER_STAGE_TEMPERATURE:
      return SamplerStage::kTemperature;
    default:
      return Refuse("sampling.stages", absl::StrCat("is unknown: ", stage));
  }
}

PenaltyParams PenaltiesFromProto(const v1::Sampling& proto) {
  PenaltyParams penalties;
  if (proto.has_repetition_penalty()) {
    penalties.repetition = proto.repetition_penalty();
  }
  if (proto.has_frequency_penalty()) {
    penalties.frequency = proto.frequency_penalty();
  }
  if (proto.has_presence_penalty()) {
    penalties.presence = proto.presence_penalty();
  }
  if (proto.has_penalty_window()) penalties.window = proto.penalty_window();
  return penalties;
}

DryParams DryFromProto(const v1::Sampling& proto) {
  DryParams dry;
  if (proto.has_dry_multiplier()) dry.multiplier = proto.dry_multiplier();
  if (proto.has_dry_base()) dry.base = proto.dry_base();
  if (proto.has_dry_allowed_length()) {
    dry.allowed_length = proto.dry_allowed_length();
  }
  if (proto.has_dry_range()) dry.window = proto.dry_range();
  if (proto.has_dry_breakers()) {
    const auto& strings = proto.dry_breakers().strings();
    dry.breakers.assign(strings.begin(), strings.end());
  }
  return dry;
}

void TruncationFromProto(const v1::Sampling& proto, SamplingParams& sampling) {
  if (proto.has_temperature()) sampling.temperature = proto.temperature();
  if (proto.has_top_k()) sampling.top_k = proto.top_k();
  if (proto.has_top_p()) sampling.top_p = proto.top_p();
  if (proto.has_min_p()) sampling.min_p = proto.min_p();
  if (proto.has_typical_p()) sampling.typical_p = proto.typical_p();
  if (proto.has_top_n_sigma()) sampling.top_n_sigma = proto.top_n_sigma();
  if (proto.has_xtc_probability()) {
    sampling.xtc.probability = proto.xtc_probability();
  }
  if (proto.has_xtc_threshold()) sampling.xtc.threshold = proto.xtc_threshold();
  sampling.mirostat.on = proto.mirostat();
  if (proto.has_mirostat_tau()) sampling.mirostat.tau = proto.mirostat_tau();
  if (proto.has_mirostat_eta()) sampling.mirostat.eta = proto.mirostat_eta();
}

}  // namespace

v1::Sampling ToProto(const SamplingParams& sampling) {
  v1::Sampling proto;
  proto.set_temperature(sampling.temperature);
  proto.set_top_k(sampling.top_k);
  proto.set_top_p(sampling.top_p);
  proto.set_min_p(sampling.min_p);
  proto.set_typical_p(sampling.typical_p);
  proto.set_top_n_sigma(sampling.top_n_sigma);
  proto.set_repetition_penalty(sampling.penalties.repetition);
  proto.set_frequency_penalty(sampling.penalties.frequency);
  proto.set_presence_penalty(sampling.penalties.presence);
  proto.set_penalty_window(sampling.penalties.window);
  proto.set_dry_multiplier(sampling.dry.multiplier);
  proto.set_dry_base(sampling.dry.base);
  proto.set_dry_allowed_length(sampling.dry.allowed_length);
  proto.set_dry_range(sampling.dry.window);
  proto.mutable_dry_breakers();  // an empty list is a value too
  for (const std::string& text : sampling.dry.breakers) {
    proto.mutable_dry_breakers()->add_strings(text);
  }
  proto.set_xtc_probability(sampling.xtc.probability);
  proto.set_xtc_threshold(sampling.xtc.threshold);
  proto.set_mirostat(sampling.mirostat.on);
  proto.set_mirostat_tau(sampling.mirostat.tau);
  proto.set_mirostat_eta(sampling.mirostat.eta);
  for (const auto& [token, bias] : sampling.logit_bias) {
    (*proto.mutable_logit_bias())[token] = bias;
  }
  proto.mutable_allowed_tokens()->Add(sampling.allowed_tokens.begin(),
                                      sampling.allowed_tokens.end());
  for (SamplerStage stage : sampling.stages) proto.add_stages(ToProto(stage));
  proto.set_seed(sampling.seed);
  if (sampling.logprobs >= 0) proto.set_logprobs(sampling.logprobs);
  return proto;
}

v1::Stop ToProto(const StopConditions& stop) {
  v1::Stop proto;
  proto.set_max_tokens(stop.max_tokens);
  proto.set_min_tokens(stop.min_tokens);
  proto.mutable_ids()->Add(stop.stop_ids.begin(), stop.stop_ids.end());
  for (const std::string& text : stop.stop_strings) proto.add_strings(text);
  proto.set_ignore_eos(stop.ignore_eos);
  return proto;
}

v1::BeamSearch ToProto(const BeamParams& beam) {
  v1::BeamSearch proto;
  proto.set_width(beam.width);
  proto.set_length_penalty(beam.length_penalty);
  return proto;
}

absl::StatusOr<SamplingParams> FromProto(const v1::Sampling& proto) {
  SamplingParams sampling;
  TruncationFromProto(proto, sampling);
  sampling.penalties = PenaltiesFromProto(proto);
  sampling.dry = DryFromProto(proto);
  sampling.logit_bias.assign(proto.logit_bias().begin(),
                             proto.logit_bias().end());
  std::sort(sampling.logit_bias.begin(), sampling.logit_bias.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TokenId>& allowed = sampling.allowed_tokens;
  allowed.assign(proto.allowed_tokens().begin(), proto.allowed_tokens().end());
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  for (int stage : proto.stages()) {
    ASSIGN_OR_RETURN(SamplerStage known, FromProto(stage));
    sampling.stages.push_back(known);
  }
  sampling.seed = proto.seed();
  if (proto.has_logprobs()) {
    // The domain's "none" is not something that a client can ask for.
    if (proto.logprobs() < 0) {
      return Refuse("sampling.logprobs",
                    absl::StrCat("is ", proto.logprobs(),
                                 "; it must be 0 or more, or absent"));
    }
    sampling.logprobs = proto.logprobs();
  }
  return sampling;
}

absl::StatusOr<StopConditions> FromProto(v1::Stop proto) {
  StopConditions stop;
  if (proto.has_max_tokens()) stop.max_tokens = proto.max_tokens();
  stop.min_tokens = proto.min_tokens();
  stop.stop_ids.assign(proto.ids().begin(), proto.ids().end());
  for (std::string& text : *proto.mutable_strings()) {
    stop.stop_strings.push_back(std::move(text));
  }
  stop.ignore_eos = proto.ignore_eos();
  return stop;
}

absl::StatusOr<BeamParams> FromProto(const v1::BeamSearch& proto) {
  if (proto.width() < 1) {
    return Refuse("beam.width", absl::StrCat("is ", proto.width(),
                                             "; it must be 1 or more, or beam "
                                             "left out"));
  }
  BeamParams beam;
  beam.width = proto.width();
  if (proto.has_length_penalty()) beam.length_penalty = proto.length_penalty();
  return beam;
}

}  // namespace penstock
