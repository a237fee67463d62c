#include "router/http/openai/sampling_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

constexpr size_t kMaxName = 256;
// SamplerStage by name, in its order.
constexpr std::array<absl::string_view, kSamplerStageCount> kStages = {
    "penalties", "dry",   "top_n_sigma", "top_k",      "typical_p",
    "top_p",     "min_p", "xtc",         "temperature"};
// Looking up a field of an object takes time in its length.
constexpr size_t kMaxBiases = RequestLimits{}.max_logit_bias;

std::vector<std::pair<TokenId, float>> ReadLogitBias(BodyFields& fields) {
  std::vector<std::pair<TokenId, float>> biases;
  const ApiJson* object = fields.Find("logit_bias");
  if (object == nullptr) return biases;
  if (!object->is_object()) {
    fields.FailAt("logit_bias", "must be an object of token ids and numbers");
    return biases;
  }
  if (object->size() > kMaxBiases) {
    fields.FailAt("logit_bias",
                  absl::StrCat("has ", object->size(),
                               " tokens; it may have at most ", kMaxBiases));
    return biases;
  }
  BodyFields values(*object, "logit_bias.");
  for (const auto& [key, value] : object->items()) {
    TokenId id = 0;
    if (!absl::SimpleAtoi(key, &id) || id < 0) {
      values.FailAt(key, "is no token id; give whole numbers from 0");
    }
    if (value.is_null()) values.FailAt(key, "must be a number, not null");
    biases.emplace_back(id, values.Float(key, 0.0f));
    if (!values.status().ok()) break;
  }
  fields.Fail(values.status());
  std::sort(biases.begin(), biases.end());
  for (size_t i = 1; i < biases.size(); ++i) {
    if (biases[i].first == biases[i - 1].first) {
      fields.FailAt("logit_bias",
                    absl::StrCat("has token ", biases[i].first, " twice"));
    }
  }
  return biases;
}

void ReadPenalties(BodyFields& fields, PenaltyParams& penalties) {
  penalties.repetition =
      fields.Float("repetition_penalty", penalties.repetition);
  penalties.frequency = fields.Float("frequency_penalty", penalties.frequency);
  penalties.presence = fields.Float("presence_penalty", penalties.presence);
  penalties.window = fields.Int("repeat_last_n", penalties.window);
}

void ReadDry(BodyFields& fields, DryParams& dry) {
  dry.multiplier = fields.Float("dry_multiplier", dry.multiplier);
  dry.base = fields.Float("dry_base", dry.base);
  dry.allowed_length = fields.Int("dry_allowed_length", dry.allowed_length);
  dry.window = fields.Int("dry_penalty_last_n", dry.window);
  if (fields.Find("dry_sequence_breakers") != nullptr) {
    dry.breakers = fields.Strings("dry_sequence_breakers", /*or_one=*/false);
  }
}

void ReadMirostat(BodyFields& fields, MirostatParams& mirostat) {
  const int mode = fields.Int("mirostat", fields.Int("mirostat_mode", 0));
  if (mode != 0 && mode != 2) {
    fields.FailAt("mirostat",
                  absl::StrCat("is ", mode, "; it must be 0 (off) or 2"));
  }
  mirostat.on = mode == 2;
  mirostat.tau = fields.Float("mirostat_tau", mirostat.tau);
  mirostat.eta = fields.Float("mirostat_eta", mirostat.eta);
}

std::vector<SamplerStage> ReadStages(BodyFields& fields) {
  std::vector<SamplerStage> stages;
  for (const std::string& name : fields.Strings("stages", /*or_one=*/false)) {
    const auto known = std::find(kStages.begin(), kStages.end(), name);
    if (known == kStages.end()) {
      fields.FailAt(
          absl::StrCat("stages[", stages.size(), "]"),
          absl::StrCat("must be one of ", absl::StrJoin(kStages, ", ")));
      break;
    }
    stages.push_back(static_cast<SamplerStage>(known - kStages.begin()));
  }
  return stages;
}

SamplingParams ReadSampling(BodyFields& fields) {
  SamplingParams sampling;
  sampling.temperature = fields.Float("temperature", sampling.temperature);
  sampling.top_p = fields.Float("top_p", sampling.top_p);
  // Others say -1 for all tokens.
  sampling.top_k = fields.Int("top_k", sampling.top_k);
  if (sampling.top_k == -1) sampling.top_k = 0;
  sampling.min_p = fields.Float("min_p", sampling.min_p);
  sampling.typical_p = fields.Float("typical_p", sampling.typical_p);
  sampling.top_n_sigma =
      std::max(fields.Float("top_n_sigma", sampling.top_n_sigma), 0.0f);
  ReadPenalties(fields, sampling.penalties);
  ReadDry(fields, sampling.dry);
  sampling.xtc.probability =
      fields.Float("xtc_probability", sampling.xtc.probability);
  sampling.xtc.threshold =
      fields.Float("xtc_threshold", sampling.xtc.threshold);
  ReadMirostat(fields, sampling.mirostat);
  sampling.stages = ReadStages(fields);
  sampling.logit_bias = ReadLogitBias(fields);
  sampling.allowed_tokens = fields.Tokens("allowed_token_ids");
  std::vector<TokenId>& allowed = sampling.allowed_tokens;
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  sampling.seed = static_cast<uint64_t>(fields.Int64("seed", 0));
  return sampling;
}

void RefuseWhatComesLater(BodyFields& fields) {
  constexpr absl::string_view kStructured =
      "is not served here yet; leave it out and ask for the form in words";
  for (const char* name :
       {"guided_json", "guided_regex", "guided_choice", "guided_grammar",
        "structured_outputs", "grammar", "json_schema"}) {
    fields.RefuseSet(name, kStructured);
  }
  if (const ApiJson* format = fields.Find("response_format")) {
    if (!format->is_object()) {
      fields.FailAt("response_format", "must be an object with a type");
      return;
    }
    BodyFields inner(*format, "response_format.");
    const std::string type = inner.String("type", kMaxName);
    fields.Fail(inner.status());
    if (type != "text") fields.RefuseSet("response_format", kStructured);
  }
}

}  // namespace

ClientRequest ReadSharedFields(BodyFields& fields) {
  ClientRequest client;
  GenerateRequest& request = client.request;
  request.model = fields.String("model", kMaxName);
  request.sampling = ReadSampling(fields);
  client.has_seed = fields.Find("seed") != nullptr;
  request.stop.min_tokens = fields.Int("min_tokens", 0);
  request.stop.stop_ids = fields.Tokens("stop_token_ids");
  request.stop.stop_strings = fields.Strings("stop", /*or_one=*/true);
  request.stop.ignore_eos = fields.Bool("ignore_eos", false);
  request.n = fields.Int("n", 1);
  request.prompt_logprobs = fields.Int("prompt_logprobs", -1);
  if (fields.Bool("use_beam_search", false)) {
    // Others give the width as n.
    request.beam.width = fields.Int("beam_width", request.n);
    if (request.beam.width < 1) {
      fields.FailAt("beam_width", absl::StrCat("is ", request.beam.width,
                                               "; it must be 1 or more"));
    }
  }
  request.beam.length_penalty =
      fields.Float("length_penalty", request.beam.length_penalty);
  request.cache_salt = fields.String("cache_salt", kMaxName);
  request.session = fields.String("prompt_cache_key", kMaxName);
  const std::string user = fields.String("user", kMaxName);
  if (request.session.empty()) request.session = user;
  request.priority = fields.Int("priority", 0);
  RefuseWhatComesLater(fields);
  return client;
}

}  // namespace penstock
