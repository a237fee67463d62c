#include "common/model/generate_request.h"

#include <bitset>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

absl::Status Invalid(absl::string_view field, absl::string_view value,
                     absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, "; it must be ", allowed));
}

absl::Status ValidatePrompt(const GenerateRequest& request,
                            const RequestLimits& limits) {
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(
        "prompt is empty; give text, messages or token ids");
  }
  if (static_cast<int64_t>(request.prompt.size()) > limits.max_prompt_tokens) {
    return Invalid("prompt", absl::StrCat(request.prompt.size(), " tokens"),
                   absl::StrCat("at most ", limits.max_prompt_tokens,
                                " tokens (the model's context is ",
                                limits.context_length, ")"));
  }
  for (size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i] < 0 || request.prompt[i] >= limits.vocab_size) {
      return Invalid(absl::StrCat("prompt[", i, "]"),
                     absl::StrCat(request.prompt[i]),
                     absl::StrCat("in [0, ", limits.vocab_size, ")"));
    }
  }
  return absl::OkStatus();
}

// Written so that NaN is refused.
absl::Status CheckRange(absl::string_view field, float value, float least,
                        float most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Invalid(field, absl::StrCat(value),
                 absl::StrCat("in [", least, ", ", most, "]"));
}

// In (0, most].
absl::Status CheckAboveZero(absl::string_view field, float value, float most) {
  if (value > 0 && value <= most) return absl::OkStatus();
  return Invalid(field, absl::StrCat(value),
                 absl::StrCat("in (0, ", most, "]"));
}

absl::Status CheckCount(absl::string_view field, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Invalid(field, absl::StrCat(value),
                 absl::StrCat("in [", least, ", ", most, "]"));
}

absl::Status CheckWindow(absl::string_view field, int window) {
  if (window >= -1) return absl::OkStatus();
  return Invalid(field, absl::StrCat(window), "-1 (all) or more");
}

// Of a set of tokens as the domain keeps it: sorted, each once.
absl::Status CheckTokenSet(absl::string_view field, TokenId last, TokenId token,
                           const RequestLimits& limits) {
  if (token < 0 || token >= limits.vocab_size) {
    return Invalid(field, absl::StrCat(token),
                   absl::StrCat("in [0, ", limits.vocab_size, ")"));
  }
  if (token <= last) {
    return Invalid(field, absl::StrCat("out of order at ", token),
                   "sorted, each token once");
  }
  return absl::OkStatus();
}

absl::Status ValidateCuts(const SamplingParams& sampling) {
  RETURN_IF_ERROR(
      CheckRange("sampling.temperature", sampling.temperature, 0, 100));
  if (sampling.top_k < 0) {
    return Invalid("sampling.top_k", absl::StrCat(sampling.top_k),
                   "0 (all) or more");
  }
  RETURN_IF_ERROR(CheckAboveZero("sampling.top_p", sampling.top_p, 1));
  RETURN_IF_ERROR(CheckRange("sampling.min_p", sampling.min_p, 0, 1));
  RETURN_IF_ERROR(CheckAboveZero("sampling.typical_p", sampling.typical_p, 1));
  RETURN_IF_ERROR(
      CheckRange("sampling.top_n_sigma", sampling.top_n_sigma, 0, 100));
  RETURN_IF_ERROR(
      CheckRange("sampling.xtc_probability", sampling.xtc.probability, 0, 1));
  RETURN_IF_ERROR(
      CheckRange("sampling.xtc_threshold", sampling.xtc.threshold, 0, 1));
  RETURN_IF_ERROR(
      CheckAboveZero("sampling.mirostat_tau", sampling.mirostat.tau, 100));
  return CheckAboveZero("sampling.mirostat_eta", sampling.mirostat.eta, 1);
}

absl::Status ValidatePenalties(const PenaltyParams& penalties) {
  // Bounded on both sides, so that no finite logit leaves what a float holds.
  RETURN_IF_ERROR(CheckRange("sampling.repetition_penalty",
                             penalties.repetition, 0.01f, 100));
  RETURN_IF_ERROR(
      CheckRange("sampling.frequency_penalty", penalties.frequency, -100, 100));
  RETURN_IF_ERROR(
      CheckRange("sampling.presence_penalty", penalties.presence, -100, 100));
  return CheckWindow("sampling.penalty_window", penalties.window);
}

absl::Status ValidateDry(const DryParams& dry, const RequestLimits& limits) {
  RETURN_IF_ERROR(
      CheckRange("sampling.dry_multiplier", dry.multiplier, 0, 100));
  RETURN_IF_ERROR(CheckRange("sampling.dry_base", dry.base, 1, 100));
  if (dry.allowed_length < 1) {
    return Invalid("sampling.dry_allowed_length",
                   absl::StrCat(dry.allowed_length), "1 or more");
  }
  RETURN_IF_ERROR(CheckWindow("sampling.dry_range", dry.window));
  if (dry.breakers.size() > static_cast<size_t>(limits.max_dry_breakers)) {
    return Invalid("sampling.dry_breakers",
                   absl::StrCat(dry.breakers.size(), " strings"),
                   absl::StrCat("at most ", limits.max_dry_breakers));
  }
  for (const std::string& text : dry.breakers) {
    if (text.empty() ||
        text.size() > static_cast<size_t>(limits.max_stop_string_bytes)) {
      return Invalid(
          "sampling.dry_breakers", absl::StrCat(text.size(), " bytes long"),
          absl::StrCat("1 to ", limits.max_stop_string_bytes, " bytes long"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateTokenChoice(const SamplingParams& sampling,
                                 const RequestLimits& limits) {
  if (sampling.logit_bias.size() > static_cast<size_t>(limits.max_logit_bias)) {
    return Invalid("sampling.logit_bias",
                   absl::StrCat(sampling.logit_bias.size(), " tokens"),
                   absl::StrCat("at most ", limits.max_logit_bias));
  }
  TokenId last = -1;
  for (const auto& [token, bias] : sampling.logit_bias) {
    RETURN_IF_ERROR(CheckTokenSet("sampling.logit_bias", last, token, limits));
    RETURN_IF_ERROR(CheckRange(absl::StrCat("sampling.logit_bias[", token, "]"),
                               bias, -100, 100));
    last = token;
  }
  last = -1;
  for (TokenId token : sampling.allowed_tokens) {
    RETURN_IF_ERROR(
        CheckTokenSet("sampling.allowed_tokens", last, token, limits));
    last = token;
  }
  return absl::OkStatus();
}

absl::Status ValidateSampling(const SamplingParams& sampling,
                              const RequestLimits& limits) {
  RETURN_IF_ERROR(ValidateCuts(sampling));
  RETURN_IF_ERROR(ValidatePenalties(sampling.penalties));
  RETURN_IF_ERROR(ValidateDry(sampling.dry, limits));
  RETURN_IF_ERROR(ValidateTokenChoice(sampling, limits));
  std::bitset<kSamplerStageCount> seen;
  for (SamplerStage stage : sampling.stages) {
    const auto index = static_cast<size_t>(stage);
    if (index >= seen.size() || seen[index]) {
      return Invalid("sampling.stages", absl::StrCat("wrong at stage ", index),
                     "a list of known stages, each at most once");
    }
    seen.set(index);
  }
  if (sampling.logprobs < -1 || sampling.logprobs > limits.max_logprobs) {
    return Invalid("sampling.logprobs", absl::StrCat(sampling.logprobs),
                   absl::StrCat("in [0, ", limits.max_logprobs, "]"));
  }
  return absl::OkStatus();
}

// The field of `sampling` that beam search has no use for; empty: none. It
// compares whole answers by their log-probabilities and draws nothing.
absl::string_view FieldThatDraws(const SamplingParams& sampling) {
  const SamplingParams plain;
  if (sampling.temperature != 0 && sampling.temperature != 1) {
    return "temperature";
  }
  if (sampling.top_k != plain.top_k) return "top_k";
  if (sampling.top_p != plain.top_p) return "top_p";
  if (sampling.min_p != plain.min_p) return "min_p";
  if (sampling.typical_p != plain.typical_p) return "typical_p";
  if (sampling.top_n_sigma != plain.top_n_sigma) return "top_n_sigma";
  if (sampling.penalties.repetition != plain.penalties.repetition) {
    return "repetition_penalty";
  }
  if (sampling.penalties.frequency != plain.penalties.frequency) {
    return "frequency_penalty";
  }
  if (sampling.penalties.presence != plain.penalties.presence) {
    return "presence_penalty";
  }
  if (sampling.dry.multiplier != plain.dry.multiplier) return "dry_multiplier";
  if (sampling.xtc.probability != plain.xtc.probability) {
    return "xtc_probability";
  }
  if (sampling.mirostat.on) return "mirostat";
  if (!sampling.logit_bias.empty()) return "logit_bias";
  if (!sampling.allowed_tokens.empty()) return "allowed_tokens";
  return "";
}

absl::Status ValidateAnswers(const GenerateRequest& request,
                             const RequestLimits& limits) {
  RETURN_IF_ERROR(CheckCount("n", request.n, 1, limits.max_answers));
  if (request.best_of != 0) {
    RETURN_IF_ERROR(
        CheckCount("best_of", request.best_of, request.n, limits.max_answers));
  }
  if (request.prompt_logprobs < -1 ||
      request.prompt_logprobs > limits.max_logprobs) {
    return Invalid("prompt_logprobs", absl::StrCat(request.prompt_logprobs),
                   absl::StrCat("in [0, ", limits.max_logprobs, "]"));
  }
  const BeamParams& beam = request.beam;
  if (beam.width == 0) return absl::OkStatus();
  RETURN_IF_ERROR(
      CheckCount("beam.width", beam.width, request.n, limits.max_answers));
  RETURN_IF_ERROR(
      CheckRange("beam.length_penalty", beam.length_penalty, -10, 10));
  if (request.best_of != 0) {
    return absl::InvalidArgumentError(
        "best_of cannot go with beam: beam search ranks its own answers; "
        "leave one of them out");
  }
  const absl::string_view field = FieldThatDraws(request.sampling);
  if (!field.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.", field,
                     " cannot go with beam: beam search draws nothing; leave "
                     "one of them out"));
  }
  return absl::OkStatus();
}

absl::Status ValidateStop(const StopConditions& stop,
                          const RequestLimits& limits, bool scores) {
  if (stop.max_tokens < (scores ? 0 : 1)) {
    return Invalid("stop.max_tokens", absl::StrCat(stop.max_tokens),
                   "1 or more (0 only with prompt_logprobs)");
  }
  RETURN_IF_ERROR(
      CheckCount("stop.min_tokens", stop.min_tokens, 0, stop.max_tokens));
  if (stop.stop_strings.size() > static_cast<size_t>(limits.max_stop_strings)) {
    return Invalid("stop.strings",
                   absl::StrCat(stop.stop_strings.size(), " strings"),
                   absl::StrCat("at most ", limits.max_stop_strings));
  }
  for (const std::string& text : stop.stop_strings) {
    if (text.empty() ||
        text.size() > static_cast<size_t>(limits.max_stop_string_bytes)) {
      return Invalid(
          "stop.strings", absl::StrCat(text.size(), " bytes long"),
          absl::StrCat("1 to ", limits.max_stop_string_bytes, " bytes long"));
    }
  }
  if (stop.stop_ids.size() > static_cast<size_t>(limits.max_stop_ids)) {
    return Invalid("stop.ids", absl::StrCat(stop.stop_ids.size(), " tokens"),
                   absl::StrCat("at most ", limits.max_stop_ids));
  }
  for (TokenId id : stop.stop_ids) {
    if (id < 0 || id >= limits.vocab_size) {
      return Invalid("stop.ids", absl::StrCat(id),
                     absl::StrCat("in [0, ", limits.vocab_size, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const GenerateRequest& request,
                      const RequestLimits& limits) {
  RETURN_IF_ERROR(ValidatePrompt(request, limits));
  RETURN_IF_ERROR(ValidateSampling(request.sampling, limits));
  RETURN_IF_ERROR(
      ValidateStop(request.stop, limits, request.prompt_logprobs >= 0));
  RETURN_IF_ERROR(ValidateAnswers(request, limits));
  if (request.timeout <= absl::ZeroDuration()) {
    return Invalid("timeout", absl::FormatDuration(request.timeout),
                   "longer than zero");
  }
  return absl::OkStatus();
}

}  // namespace penstock
