#include "router/core/policy/prefix_aware_ranking.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "router/core/policy/least_of.h"

namespace penstock {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// By the decode worker's pairing: the least PrefillEnd of its partners.
std::vector<double> BestPartners(const LegChoice& choice,
                                 const PlacementCost& cost) {
  const ClusterView& view = choice.view;
  std::vector<double> of_prefill(view.pairings(), kNever);
  choice.candidates.prefill.ForEach([&](size_t slot) {
    double& least = of_prefill[view.columns.pairing[slot]];
    least = std::min(
        least, cost.PrefillEnd(choice.request, choice.candidates, view, slot));
  });
  std::vector<double> of_decode(view.pairings(), kNever);
  for (int from = 0; from < view.pairings(); ++from) {
    if (of_prefill[from] == kNever) continue;
    for (int to = 0; to < view.pairings(); ++to) {
      if (!view.CanHandOff(from, to)) continue;
      of_decode[to] = std::min(of_decode[to], of_prefill[from]);
    }
  }
  return of_decode;
}

}  // namespace

WorkerSlot PrefixAwareRanking::PickDecode(const LegChoice& choice,
                                          Random& random) const {
  const RequestFacts& request = choice.request;
  const Candidates& candidates = choice.candidates;
  const WorkerColumns& columns = choice.view.columns;
  const std::vector<double> partners = BestPartners(choice, cost_);
  auto prompt_time = [&](size_t slot) {
    const double alone = cost_.Prefill(request, candidates, slot);
    const double partner = partners[columns.pairing[slot]];
    if (partner == kNever || request.prompt_tokens - candidates.cached[slot] <
                                 local_prefill_tokens_) {
      return alone;
    }
    const double pair = partner + cost_.Transfer(request, candidates, slot);
    return candidates.keepers.Contains(slot) ? std::min(alone, pair) : pair;
  };
  // Of workers that have none of the prompt, by pairing.
  std::vector<double> cold(partners.size(), -1);
  auto cold_time = [&](size_t slot) {
    double& time = cold[columns.pairing[slot]];
    if (time < 0) time = prompt_time(slot);
    return time;
  };
  const double share = cost_.DecodeShare(request);
  return LeastOf(choice.open, random, [&](size_t slot) {
    return columns.ahead[slot] + share * (1 + columns.pressure[slot]) +
           (candidates.cached[slot] == 0 ? cold_time(slot) : prompt_time(slot));
  });
}

WorkerSlot PrefixAwareRanking::Pick(const LegChoice& choice,
                                    Random& random) const {
  if (choice.leg == LegKind::kDecode) return PickDecode(choice, random);
  return LeastOf(choice.open, random, [&](size_t slot) {
    return cost_.PrefillEnd(choice.request, choice.candidates, choice.view,
                            slot);
  });
}

}  // namespace penstock
