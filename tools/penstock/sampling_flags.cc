#include "tools/penstock/sampling_flags.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

absl::Status CannotRead(absl::string_view flag, absl::string_view text,
                        absl::string_view form) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": \"", text, "\" is not ", form));
}

// "penalties" for SAMPLER_STAGE_PENALTIES: "" when there is none.
std::string StageName(int stage) {
  constexpr absl::string_view kPrefix = "SAMPLER_STAGE_";
  if (stage == v1::SAMPLER_STAGE_UNSPECIFIED ||
      !v1::SamplerStage_IsValid(stage))
    return "";
  return absl::AsciiStrToLower(
      v1::SamplerStage_Name(static_cast<v1::SamplerStage>(stage))
          .substr(kPrefix.size()));
}

std::string StageNames() {
  std::string names;
  for (int stage = v1::SamplerStage_MIN; stage <= v1::SamplerStage_MAX;
       ++stage) {
    const std::string name = StageName(stage);
    if (name.empty()) continue;
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
  }
  return names;
}

absl::Status FillStages(const std::string& text, v1::Sampling* sampling) {
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view wanted : absl::StrSplit(text, ',')) {
    int stage = v1::SamplerStage_MAX;
    while (stage > 0 && StageName(stage) != wanted) --stage;
    if (stage == 0) {
      return CannotRead("--stages", wanted,
                        absl::StrCat("one of ", StageNames()));
    }
    sampling->add_stages(static_cast<v1::SamplerStage>(stage));
  }
  return absl::OkStatus();
}

}  // namespace

void SamplingFlags::AddTo(CLI::App& command) {
  AddAnswers(command);
  AddEnd(command);
  AddCuts(command);
  AddPenalties(command);
  AddTokenChoice(command);
}

void SamplingFlags::AddAnswers(CLI::App& command) {
  command.add_option("--n", n_, "answers; default 1");
  command.add_option("--best-of", best_of_,
                     "answers made, of which the likeliest n come back");
  command.add_option("--beam", beam_,
                     "beam search of this width instead of sampling");
  command.add_option("--length-penalty", length_penalty_,
                     "of beam search: the power of an answer's length that its "
                     "log-probability is divided by; default 1");
  command.add_option("--logprobs", logprobs_,
                     "log-probabilities of the best K tokens at each step");
  command.add_option("--prompt-logprobs", prompt_logprobs_,
                     "the same of the prompt's own tokens; with --json");
}

void SamplingFlags::AddEnd(CLI::App& command) {
  command.add_option("--max-tokens", max_tokens_, "tokens to write at most")
      ->capture_default_str();
  command.add_option("--min-tokens", min_tokens_,
                     "tokens before the answer may end by itself; default 0");
  command
      .add_option("--stop", stops_,
                  "text that ends the answer; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--stop-id", stop_ids_,
                  "token that ends the answer; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos_,
                   "go on after the model's own end");
}

void SamplingFlags::AddCuts(CLI::App& command) {
  command.add_option("--seed", seed_, "default: drawn");
  command.add_option("--temperature", temperature_, "0 is greedy; default 1");
  command.add_option("--top-k", top_k_, "the best K only; default 0: all");
  command.add_option("--top-p", top_p_,
                     "the best whose shares reach P; default 1: all");
  command.add_option("--min-p", min_p_,
                     "those with P times the best one's share; default 0: all");
  command.add_option("--typical-p", typical_p_,
                     "the most typical whose shares reach P; default 1: all");
  command.add_option("--top-n-sigma", top_n_sigma_,
                     "logits within N standard deviations of the best; "
                     "default 0: all");
  command.add_option("--xtc-probability", xtc_probability_,
                     "how often the top choices are excluded; default 0");
  command.add_option("--xtc-threshold", xtc_threshold_,
                     "share from which a token is a top choice; default 0.1");
  command.add_flag("--mirostat", mirostat_,
                   "mirostat 2 in place of the other cuts");
  command.add_option("--mirostat-tau", mirostat_tau_,
                     "surprise aimed at, in bits; default 5");
  command.add_option("--mirostat-eta", mirostat_eta_,
                     "how fast it is corrected; default 0.1");
  command.add_option(
      "--stages", stages_,
      absl::StrCat("what is applied, in order; default ", StageNames()));
}

void SamplingFlags::AddPenalties(CLI::App& command) {
  command.add_option("--repetition-penalty", repetition_,
                     "divides logits of tokens in prompt or answer; default 1");
  command.add_option("--presence-penalty", presence_,
                     "off logits of tokens in the answer; default 0");
  command.add_option("--frequency-penalty", frequency_,
                     "the same for each time that one occurs; default 0");
  command.add_option("--penalty-window", penalty_window_,
                     "tokens that penalties look back; default -1: all");
  command.add_option("--dry-multiplier", dry_multiplier_,
                     "off logits of tokens that lengthen a repeated run; "
                     "default 0");
  command.add_option("--dry-base", dry_base_,
                     "its growth with the run's length; default 1.75");
  command.add_option("--dry-allowed-length", dry_allowed_length_,
                     "the shortest run that counts; default 2");
  command.add_option("--dry-range", dry_range_,
                     "tokens that DRY looks back; default -1: all");
  CLI::Option* breakers =
      command
          .add_option("--dry-breaker", dry_breakers_,
                      "text that ends a run, in place of the defaults (line "
                      "end, colon, quote, asterisk); may be repeated")
          ->allow_extra_args(false);
  command.add_flag("--dry-no-breakers", dry_no_breakers_, "nothing ends a run")
      ->excludes(breakers);
}

void SamplingFlags::AddTokenChoice(CLI::App& command) {
  command
      .add_option("--logit-bias", logit_bias_,
                  "ID:BIAS added to a token's logit; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--allowed-token", allowed_tokens_,
                  "only such tokens are drawn; may be repeated")
      ->allow_extra_args(false);
}

absl::Status SamplingFlags::Fill(v1::GenerateRequest* request) const {
  v1::Sampling* sampling = request->mutable_sampling();
  FillCuts(sampling);
  FillPenalties(sampling);
  RETURN_IF_ERROR(FillTokenChoice(sampling));
  RETURN_IF_ERROR(FillStages(stages_, sampling));
  RETURN_IF_ERROR(FillStop(request->mutable_stop()));
  if (logprobs_) sampling->set_logprobs(*logprobs_);
  if (n_) request->set_n(*n_);
  if (best_of_) request->set_best_of(*best_of_);
  if (beam_) request->mutable_beam()->set_width(*beam_);
  if (length_penalty_) {
    request->mutable_beam()->set_length_penalty(*length_penalty_);
  }
  if (prompt_logprobs_) request->set_prompt_logprobs(*prompt_logprobs_);
  return absl::OkStatus();
}

void SamplingFlags::FillCuts(v1::Sampling* sampling) const {
  if (seed_) sampling->set_seed(*seed_);
  if (temperature_) sampling->set_temperature(*temperature_);
  if (top_k_) sampling->set_top_k(*top_k_);
  if (top_p_) sampling->set_top_p(*top_p_);
  if (min_p_) sampling->set_min_p(*min_p_);
  if (typical_p_) sampling->set_typical_p(*typical_p_);
  if (top_n_sigma_) sampling->set_top_n_sigma(*top_n_sigma_);
  if (xtc_probability_) sampling->set_xtc_probability(*xtc_probability_);
  if (xtc_threshold_) sampling->set_xtc_threshold(*xtc_threshold_);
  if (mirostat_) sampling->set_mirostat(true);
  if (mirostat_tau_) sampling->set_mirostat_tau(*mirostat_tau_);
  if (mirostat_eta_) sampling->set_mirostat_eta(*mirostat_eta_);
}

void SamplingFlags::FillPenalties(v1::Sampling* sampling) const {
  if (repetition_) sampling->set_repetition_penalty(*repetition_);
  if (presence_) sampling->set_presence_penalty(*presence_);
  if (frequency_) sampling->set_frequency_penalty(*frequency_);
  if (penalty_window_) sampling->set_penalty_window(*penalty_window_);
  if (dry_multiplier_) sampling->set_dry_multiplier(*dry_multiplier_);
  if (dry_base_) sampling->set_dry_base(*dry_base_);
  if (dry_allowed_length_) {
    sampling->set_dry_allowed_length(*dry_allowed_length_);
  }
  if (dry_range_) sampling->set_dry_range(*dry_range_);
}

absl::Status SamplingFlags::FillTokenChoice(v1::Sampling* sampling) const {
  if (dry_no_breakers_) sampling->mutable_dry_breakers();
  for (const std::string& text : dry_breakers_) {
    RETURN_IF_ERROR(CheckUtf8("--dry-breaker", text));
    sampling->mutable_dry_breakers()->add_strings(text);
  }
  for (const std::string& text : logit_bias_) {
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
    int32_t token = 0;
    float bias = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &token) ||
        !absl::SimpleAtof(parts[1], &bias)) {
      return CannotRead("--logit-bias", text, "ID:BIAS, such as 11:-2.5");
    }
    (*sampling->mutable_logit_bias())[token] = bias;
  }
  for (int token : allowed_tokens_) sampling->add_allowed_tokens(token);
  return absl::OkStatus();
}

absl::Status SamplingFlags::FillStop(v1::Stop* stop) const {
  stop->set_max_tokens(max_tokens_);
  if (min_tokens_) stop->set_min_tokens(*min_tokens_);
  for (const std::string& text : stops_) {
    RETURN_IF_ERROR(CheckUtf8("--stop", text));
    stop->add_strings(text);
  }
  for (int id : stop_ids_) stop->add_ids(id);
  if (ignore_eos_) stop->set_ignore_eos(true);
  return absl::OkStatus();
}

}  // namespace penstock
