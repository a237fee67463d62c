#pragma once

#include <vector>

#include "absl/types/span.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// For tests: what a draw should be, written from the definitions of the papers
// and APIs that docs/sampling.md names, in plain double arithmetic, with every
// token sorted and looked at. Shares no code with the sampler.
struct NaiveDraw {
  std::vector<TokenId> order;  // that may be drawn, best first
  std::vector<double> shares;  // [vocab], 0 where a token may not be drawn
};

// `excludes`: whether XTC's coin fell.
NaiveDraw NaivelyDraw(absl::Span<const float> logits, const SampleRow& row,
                      bool excludes);

// The token that `uniform` in [0, 1) falls on, down the order.
TokenId TokenAt(const NaiveDraw& draw, double uniform);

}  // namespace penstock
