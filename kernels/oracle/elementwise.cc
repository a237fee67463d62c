#include "kernels/oracle/elementwise.h"

#include <cmath>
#include <numbers>

#include "kernels/host/exp.h"

namespace penstock {
namespace {

double Tanh(double x) {
  const double e = ExpNonPositive(-2 * std::abs(x));
  return std::copysign((1 - e) / (1 + e), x);
}

double Silu(double x) {
  const double e = ExpNonPositive(-std::abs(x));
  return x >= 0 ? x / (1 + e) : x * e / (1 + e);
}

double GeluTanh(double x) {
  const double slope = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1 + Tanh(slope * (x + 0.044715 * x * x * x)));
}

}  // namespace

void RmsNorm(const float* x, const float* gain, float epsilon, int n,
             float* out) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += double{x[i]} * x[i];
  const double scale = 1.0 / std::sqrt(sum / n + double{epsilon});
  for (int i = 0; i < n; ++i) {
    out[i] = static_cast<float>(x[i] * scale * gain[i]);
  }
}

float Activate(Activation activation, float x) {
  return static_cast<float>(activation == Activation::kSilu ? Silu(x)
                                                            : GeluTanh(x));
}

float SoftCap(float x, float cap) {
  if (cap == 0) return x;
  return static_cast<float>(cap * Tanh(double{x} / cap));
}

}  // namespace penstock
