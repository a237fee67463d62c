#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/api/step_plan.h"
#include "kernels/host/candidates.h"
#include "kernels/host/logit_edits.h"
#include "kernels/host/ranked_logits.h"

namespace penstock {

// Turns the logits of one row into a token and its log-probabilities. The
// result is a pure function of the arguments. Holds scratch memory only: use
// one sampler a thread.
//
// Bias and exclusions come first, then the stages of `params` in their order
// (see truncation.h and logit_edits.h), and one of the candidates that are left
// is drawn by SampleUniform(seed, sample, position). Temperature 0 takes the
// highest logit after the stages that change logits, the lowest id on a tie.
//
// Log-probabilities, where asked for, are natural logarithms of the softmax at
// temperature 1 over all logits as the model gave them, whatever the parameters
// change or keep.
class Sampler {
 public:
  // Preconditions: `logits` [vocab] is not empty; row.params passed
  // Validate(GenerateRequest); row.history is there when a stage looks back.
  // INTERNAL, naming the row and the token id: a logit is NaN or infinite. When
  // no token may be drawn, that is the SampledToken's own status.
  absl::StatusOr<SampledToken> Sample(absl::Span<const float> logits,
                                      const SampleRow& row);

  // The log-probability of row.token and of the best row.best tokens: the same
  // bits that a draw of that token reports. INTERNAL as above.
  absl::StatusOr<TokenLogprobs> Score(absl::Span<const float> logits,
                                      const ScoreRow& row);

 private:
  void RunStage(SamplerStage stage, const SampleRow& row);
  void RunCut(SamplerStage stage, const SampleRow& row);
  // Which candidate, from the best.
  size_t Draw(const SampleRow& row);
  SampledToken DrawByMirostat(const SampleRow& row);

  Candidates candidates_;
  RankedLogits plain_;  // as the model gave them, where candidates_ differs
  TokenPenalties penalties_;
  DryPenalty dry_;
};

// What a step has logits for, counted: its samples, then its scores. Draws or
// scores number `use` into its place in `result`, which has room. Errors as
// above. Calls for different uses may run at once, each with its own sampler.
absl::Status UseLogits(const StepPlan& plan, size_t use,
                       absl::Span<const float> logits, Sampler& sampler,
                       StepResult& result);

}  // namespace penstock
