#pragma once

#include <vector>

#include "kernels/api/step_plan.h"

namespace penstock {

// What a sequence drew, in order.
using Transcript = std::vector<SampledToken>;

// Equal tokens, and log-probabilities equal to the bit.
bool SameBits(const SampledToken& a, const SampledToken& b);

// A fatal failure of the current test unless all of it is the same.
void ExpectSame(const Transcript& actual, const Transcript& expected);

}  // namespace penstock
