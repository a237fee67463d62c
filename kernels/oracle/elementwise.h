#pragma once

#include "common/model/model_spec.h"

namespace penstock {

// out = x / rms(x) * gain, over n elements. May write over x.
void RmsNorm(const float* x, const float* gain, float epsilon, int n,
             float* out);

// Silu: x * sigmoid(x). GELU: its approximation by tanh (arXiv 1606.08415).
float Activate(Activation activation, float x);

// cap * tanh(x / cap); x itself where cap is 0.
float SoftCap(float x, float cap);

}  // namespace penstock
