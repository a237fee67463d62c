#include "kernels/host/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "kernels/host/row_scans.h"
#include "kernels/host/truncation.h"

namespace penstock {
namespace {

// The part of the order that is sorted first, in logits.
constexpr double kLeastBand = 0.25;

constexpr std::array<SamplerStage, kSamplerStageCount> kAllStages = {
    SamplerStage::kPenalties,  SamplerStage::kDry,
    SamplerStage::kTopNSigma,  SamplerStage::kTopK,
    SamplerStage::kTypicalP,   SamplerStage::kTopP,
    SamplerStage::kMinP,       SamplerStage::kXtc,
    SamplerStage::kTemperature};

absl::Span<const SamplerStage> StagesOf(const SamplingParams& params) {
  if (params.stages.empty()) return kAllStages;
  return params.stages;
}

// The highest logit, or INTERNAL when one is not finite.
absl::StatusOr<float> FiniteMax(absl::Span<const float> logits, int32_t row) {
  CHECK(!logits.empty());
  if (std::optional<float> max = HighestOfFinite(logits)) return *max;
  size_t id = 0;
  while (std::isfinite(logits[id])) ++id;
  return absl::InternalError(
      absl::StrCat("row ", row, ": the logit of token ", id, " is ", logits[id],
                   "; the model's weights or the row's KV pages are damaged"));
}

TokenLogprobs Logprobs(RankedLogits& ranked, TokenId token, int best) {
  const double max = ranked.max();
  const double log_sum =
      std::log(SumOfWeights(ranked.logits(), ranked.max(), 1));
  auto logprob = [&](TokenId id) {
    // Two finite logits can be further apart than a float reaches.
    constexpr double kLeast = std::numeric_limits<float>::lowest();
    return static_cast<float>(
        std::max(double{ranked.logits()[id]} - max - log_sum, kLeast));
  };
  TokenLogprobs logprobs;
  logprobs.logprob = logprob(token);
  for (size_t n = 0; n < static_cast<size_t>(best) && ranked.Reach(n); ++n) {
    const TokenId id = ranked.Id(n);
    logprobs.top.emplace_back(id, logprob(id));
  }
  return logprobs;
}

bool HasTokenChoice(const SampleRow& row) {
  return !row.params.logit_bias.empty() || !row.params.allowed_tokens.empty() ||
         !row.banned.empty();
}

const SampleHistory& HistoryOf(const SampleRow& row) {
  CHECK(row.history != nullptr) << "row " << row.row << " has no history";
  return *row.history;
}

}  // namespace

absl::StatusOr<SampledToken> Sampler::Sample(absl::Span<const float> logits,
                                             const SampleRow& row) {
  ASSIGN_OR_RETURN(const float max, FiniteMax(logits, row.row));
  const SamplingParams& params = row.params;
  candidates_.Start(logits, max,
                    std::max(4.0 * params.temperature, kLeastBand));
  SampledToken sampled;
  if (HasTokenChoice(row)) {
    ApplyTokenChoice(row, candidates_.Edit());
    if (candidates_.size() == 0) {
      sampled.status = absl::InvalidArgumentError(
          "no token may be drawn: sampling.allowed_tokens names only tokens "
          "that end the answer, and stop.min_tokens is not reached");
      return sampled;
    }
  }
  for (SamplerStage stage : StagesOf(params)) RunStage(stage, row);
  if (params.temperature == 0) {
    sampled.token = candidates_.Highest();
  } else if (params.mirostat.on) {
    sampled = DrawByMirostat(row);
  } else {
    sampled.token = candidates_.Id(Draw(row));
  }
  if (params.logprobs < 0) return sampled;
  RankedLogits* ranked = candidates_.unedited();
  if (ranked == nullptr) {
    plain_.Start(logits, max, logits.size(), kLeastBand);
    ranked = &plain_;
  }
  sampled.logprobs = Logprobs(*ranked, sampled.token, params.logprobs);
  return sampled;
}

absl::StatusOr<TokenLogprobs> Sampler::Score(absl::Span<const float> logits,
                                             const ScoreRow& row) {
  ASSIGN_OR_RETURN(const float max, FiniteMax(logits, row.row));
  plain_.Start(logits, max, logits.size(), kLeastBand);
  return Logprobs(plain_, row.token, row.best);
}

void Sampler::RunStage(SamplerStage stage, const SampleRow& row) {
  const SamplingParams& params = row.params;
  if (stage == SamplerStage::kPenalties) {
    PenaltyParams off;
    off.window = params.penalties.window;
    if (params.penalties == off) return;
    penalties_.Apply(params.penalties, HistoryOf(row), candidates_.Edit());
  } else if (stage == SamplerStage::kDry) {
    if (params.dry.multiplier <= 0) return;
    dry_.Apply(params.dry, HistoryOf(row), candidates_.Edit());
  } else if (params.temperature == 0) {
    return;  // no cut drops the best token
  } else if (stage == SamplerStage::kTemperature) {
    candidates_.Divide(params.temperature);
  } else if (!params.mirostat.on) {
    RunCut(stage, row);
  }
}

void Sampler::RunCut(SamplerStage stage, const SampleRow& row) {
  const SamplingParams& params = row.params;
  switch (stage) {
    case SamplerStage::kTopNSigma:
      KeepTopNSigma(params.top_n_sigma, candidates_);
      return;
    case SamplerStage::kTopK:
      KeepTopK(params.top_k, candidates_);
      return;
    case SamplerStage::kTypicalP:
      KeepTypical(params.typical_p, candidates_);
      return;
    case SamplerStage::kTopP:
      KeepTopP(params.top_p, candidates_);
      return;
    case SamplerStage::kMinP:
      KeepMinP(params.min_p, candidates_);
      return;
    case SamplerStage::kXtc:
      if (params.xtc.probability <= 0) return;
      ExcludeTopChoices(params.xtc,
                        SampleUniform(params.seed, row.sample, row.position,
                                      SampleStream::kXtc),
                        candidates_);
      return;
    default:
      CHECK(false) << "stage " << static_cast<int>(stage) << " is no cut";
  }
}

size_t Sampler::Draw(const SampleRow& row) {
  const double target =
      SampleUniform(row.params.seed, row.sample, row.position) *
      candidates_.Mass();
  double sum = 0;
  size_t drawn = 0;
  // Rounding can leave the sum at the end a little short of the target: then
  // the last token that can be drawn at all is it.
  for (size_t n = 0; candidates_.Reach(n); ++n) {
    const double weight = candidates_.Weight(n);
    if (Candidates::IsNothing(weight)) break;
    drawn = n;
    sum += weight;
    if (sum > target) break;
  }
  return drawn;
}

SampledToken Sampler::DrawByMirostat(const SampleRow& row) {
  const double mu = HistoryOf(row).mirostat_mu;
  KeepUnsurprising(mu, candidates_);
  const size_t drawn = Draw(row);
  const double share = candidates_.Weight(drawn) / candidates_.Mass();
  SampledToken sampled;
  sampled.token = candidates_.Id(drawn);
  sampled.mirostat_mu =
      static_cast<float>(NextMirostatMu(row.params.mirostat, mu, share));
  return sampled;
}

absl::Status UseLogits(const StepPlan& plan, size_t use,
                       absl::Span<const float> logits, Sampler& sampler,
                       StepResult& result) {
  if (use < plan.samples.size()) {
    ASSIGN_OR_RETURN(result.sampled[use],
                     sampler.Sample(logits, plan.samples[use]));
  } else {
    const size_t score = use - plan.samples.size();
    ASSIGN_OR_RETURN(result.scored[score],
                     sampler.Score(logits, plan.scores[score]));
  }
  return absl::OkStatus();
}

}  // namespace penstock
