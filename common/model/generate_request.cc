#include "common/model/generate_request.h"

#include <cmath>

#include "absl/strings/str_cat.h"

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

absl::Status ValidateSampling(const SamplingParams& sampling,
                              const RequestLimits& limits) {
  if (!(sampling.temperature >= 0.0f && sampling.temperature <= 100.0f)) {
    return Invalid("sampling.temperature", absl::StrCat(sampling.temperature),
                   "in [0, 100]");
  }
  if (sampling.top_k < 0) {
    return Invalid("sampling.top_k", absl::StrCat(sampling.top_k),
                   "0 (all) or more");
  }
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f)) {
    return Invalid("sampling.top_p", absl::StrCat(sampling.top_p), "in (0, 1]");
  }
  if (sampling.logprobs < -1 || sampling.logprobs > limits.max_logprobs) {
    return Invalid("sampling.logprobs", absl::StrCat(sampling.logprobs),
                   absl::StrCat("in [0, ", limits.max_logprobs, "]"));
  }
  return absl::OkStatus();
}

absl::Status ValidateStop(const StopConditions& stop,
                          const RequestLimits& limits) {
  if (stop.max_tokens < 1) {
    return Invalid("stop.max_tokens", absl::StrCat(stop.max_tokens),
                   "1 or more");
  }
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
  if (absl::Status s = ValidatePrompt(request, limits); !s.ok()) return s;
  if (absl::Status s = ValidateSampling(request.sampling, limits); !s.ok()) {
    return s;
  }
  if (absl::Status s = ValidateStop(request.stop, limits); !s.ok()) return s;
  if (request.timeout <= absl::ZeroDuration()) {
    return Invalid("timeout", absl::FormatDuration(request.timeout),
                   "longer than zero");
  }
  return absl::OkStatus();
}

}  // namespace penstock
