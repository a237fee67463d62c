#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "absl/types/span.h"

namespace penstock {

// Passes over all logits of a row. Sums are in double, by sixteen lanes and
// then over the lanes: the same bits whatever the vector width.

// The logit of a token that is not there.
inline constexpr float kExcludedLogit = -std::numeric_limits<float>::infinity();

// The highest logit; nullopt when one is not finite. Precondition: not empty.
std::optional<float> HighestOfFinite(absl::Span<const float> logits);

struct Peak {
  float max = kExcludedLogit;
  size_t count = 0;  // tokens that are there
};
// Precondition: every logit is finite or excluded.
Peak FindPeak(absl::Span<const float> logits);

// Sum of weights exp((logit - max) / temperature). Precondition:
// temperature > 0.
double SumOfWeights(absl::Span<const float> logits, float max,
                    double temperature);

// Sum of weight * depth, where depth is (max - logit) / temperature.
double SumOfWeightedDepths(absl::Span<const float> logits, float max,
                           double temperature);

// Of the logits that are there.
double SumOfLogits(absl::Span<const float> logits);

// Of (logit - mean) squared, likewise.
double SumOfSquares(absl::Span<const float> logits, double mean);

}  // namespace penstock
