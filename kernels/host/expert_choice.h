#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/model/model_spec.h"

namespace penstock {

// An expert that a token passes through, and how much of its answer counts.
struct ExpertShare {
  int expert = 0;
  float weight = 0;
  friend bool operator==(const ExpertShare&, const ExpertShare&) = default;
};

// The experts of one token, ascending, from the router's logits [count].
//
// A probability is the softmax over all experts or each one's own sigmoid. To
// choose, `choice_bias` [count] (or empty) is added to it (DeepSeek-V3, arXiv
// 2412.19437); of the groups, equal runs of experts, the strongest groups_used
// are kept; the best `used` experts among them win, the lowest index on a tie.
// Weights are the probabilities without the bias, normalised and scaled as
// `spec` says.
std::vector<ExpertShare> ChooseExperts(const ExpertSpec& spec,
                                       absl::Span<const float> router_logits,
                                       absl::Span<const float> choice_bias);

}  // namespace penstock
