#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/base/check.h"
#include "common/model/model_spec.h"

namespace penstock {
namespace {

std::vector<double> PlainSpeeds(double base, int dimensions) {
  std::vector<double> speeds;
  for (int i = 0; i < dimensions; i += 2) {
    speeds.push_back(std::pow(base, -double{1} * i / dimensions));
  }
  return speeds;
}

// The base at which the slowest pair, stretched over the longer context, turns
// as far as it did over the original one.
double NtkBase(const RopeSpec& rope, int context_length) {
  const double original = rope.original_context;
  if (rope.original_context <= 0 || context_length <= original) {
    return rope.base;
  }
  const double growth =
      rope.factor * context_length / original - (rope.factor - 1);
  const double d = rope.dimensions;
  return rope.base * std::pow(growth, d / (d - 2));
}

// The pair, as a fraction of an index, that turns `rotations` times over the
// original context.
double PairOfRotations(const RopeSpec& rope, double rotations) {
  return rope.dimensions *
         std::log(rope.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(double{rope.base}));
}

void ScaleYarn(const RopeSpec& rope, std::vector<double>& speeds) {
  const double low =
      std::max(std::floor(PairOfRotations(rope, rope.beta_fast)), 0.0);
  double high = std::min(std::ceil(PairOfRotations(rope, rope.beta_slow)),
                         double{1} * rope.dimensions - 1);
  if (high == low) high += 0.001;
  for (size_t i = 0; i < speeds.size(); ++i) {
    const double slow = std::clamp((i - low) / (high - low), 0.0, 1.0);
    speeds[i] *= slow / rope.factor + (1 - slow);
  }
}

void ScaleLlama3(const RopeSpec& rope, std::vector<double>& speeds) {
  for (double& speed : speeds) {
    const double rotations =
        rope.original_context * speed / (2 * std::numbers::pi);
    const double fast =
        std::clamp((rotations - rope.low_frequency_factor) /
                       (rope.high_frequency_factor - rope.low_frequency_factor),
                   0.0, 1.0);
    speed *= fast + (1 - fast) / rope.factor;
  }
}

}  // namespace

std::vector<double> RopeSpeeds(const RopeSpec& rope, int context_length) {
  const bool ntk = rope.scaling == RopeScaling::kDynamicNtk;
  std::vector<double> speeds = PlainSpeeds(
      ntk ? NtkBase(rope, context_length) : rope.base, rope.dimensions);
  switch (rope.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamicNtk:
      break;
    case RopeScaling::kLinear:
      for (double& speed : speeds) speed /= rope.factor;
      break;
    case RopeScaling::kYarn:
      ScaleYarn(rope, speeds);
      break;
    case RopeScaling::kLlama3:
      ScaleLlama3(rope, speeds);
      break;
    case RopeScaling::kDivisors:
      CHECK(rope.divisors.size() == speeds.size());
      for (size_t i = 0; i < speeds.size(); ++i) speeds[i] /= rope.divisors[i];
      break;
  }
  return speeds;
}

}  // namespace penstock
