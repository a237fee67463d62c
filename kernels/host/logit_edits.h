#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// Stages that change logits. `logits` [vocab] as Candidates::Edit gives them;
// tokens outside of it in a request or history are a programmer's error.

// Adds each bias, then excludes what is banned and, where `allowed` is not
// empty, all that it does not name.
void ApplyTokenChoice(const SampleRow& row, absl::Span<float> logits);

// Of the last `window` tokens (-1: of all). Repetition (Keskar et al. 2019,
// "CTRL"): the logit of a token that occurs is divided by it when positive,
// else multiplied. Then, as OpenAI's API has it, of a token that occurs in the
// answer, count * frequency + presence is taken off.
class TokenPenalties {
 public:
  void Apply(const PenaltyParams& params, const SampleHistory& history,
             absl::Span<float> logits);

 private:
  std::vector<int32_t> counts_;  // [vocab], all 0 between calls
  std::vector<TokenId> seen_;
};

// DRY (p-e-w, "DRY: A modern repetition penalty", text-generation-webui#5677):
// the text's end, matched against earlier text, says which tokens would make a
// repeated run longer; one that would lengthen a run of n >= allowed_length
// tokens loses multiplier * base^(n - allowed_length), of the longest such run.
// No run holds a breaker, and breakers lose nothing.
class DryPenalty {
 public:
  // Work is linear in the window.
  void Apply(const DryParams& params, const SampleHistory& history,
             absl::Span<float> logits);

 private:
  std::vector<int32_t> matches_;  // Z-array of the reversed window
  std::vector<int32_t> longest_;  // [vocab], all 0 between calls
  std::vector<TokenId> touched_;
};

}  // namespace penstock
