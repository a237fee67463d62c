#include "kernels/host/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/base/check.h"
#include "kernels/host/exp.h"

namespace penstock {
namespace {

std::vector<double> Probabilities(ExpertGating gating,
                                  absl::Span<const float> logits) {
  std::vector<double> probabilities(logits.begin(), logits.end());
  if (gating == ExpertGating::kSigmoid) {
    for (double& x : probabilities) {
      const double e = ExpNonPositive(-std::abs(x));
      x = x >= 0 ? 1 / (1 + e) : e / (1 + e);
    }
    return probabilities;
  }
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double& x : probabilities) sum += x = ExpNonPositive(x - max);
  for (double& x : probabilities) x /= sum;
  return probabilities;
}

double GroupScore(ExpertGroupScore rule, std::vector<double> scores) {
  const size_t best = rule == ExpertGroupScore::kMax ? 1 : 2;
  const size_t taken = std::min(best, scores.size());
  std::partial_sort(scores.begin(), scores.begin() + taken, scores.end(),
                    std::greater<>());
  double sum = 0;
  for (size_t i = 0; i < taken; ++i) sum += scores[i];
  return sum;
}

// Indices of the `count` best values; the lowest index on a tie.
std::vector<int> Best(const std::vector<double>& values, int count) {
  std::vector<int> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

// Experts outside the strongest groups can no longer be chosen.
void DropWeakGroups(const ExpertSpec& spec, std::vector<double>& scores) {
  const int size = spec.count / spec.groups;
  std::vector<double> strength;
  for (int group = 0; group < spec.groups; ++group) {
    const auto first = scores.begin() + group * size;
    strength.push_back(GroupScore(spec.group_score, {first, first + size}));
  }
  const std::vector<int> kept = Best(strength, spec.groups_used);
  for (int i = 0; i < spec.count; ++i) {
    if (std::find(kept.begin(), kept.end(), i / size) == kept.end()) {
      scores[i] = -std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace

std::vector<ExpertShare> ChooseExperts(const ExpertSpec& spec,
                                       absl::Span<const float> router_logits,
                                       absl::Span<const float> choice_bias) {
  CHECK(static_cast<int>(router_logits.size()) == spec.count);
  CHECK(choice_bias.empty() || choice_bias.size() == router_logits.size());
  const std::vector<double> probabilities =
      Probabilities(spec.gating, router_logits);
  std::vector<double> scores = probabilities;
  for (size_t i = 0; i < choice_bias.size(); ++i) scores[i] += choice_bias[i];
  if (spec.groups_used < spec.groups) DropWeakGroups(spec, scores);

  std::vector<int> chosen = Best(scores, spec.used);
  std::sort(chosen.begin(), chosen.end());
  double sum = 0;
  for (int expert : chosen) sum += probabilities[expert];
  const double scale = spec.normalize ? spec.scale / sum : spec.scale;
  std::vector<ExpertShare> shares;
  for (int expert : chosen) {
    shares.push_back(
        {expert, static_cast<float>(probabilities[expert] * scale)});
  }
  return shares;
}

}  // namespace penstock
