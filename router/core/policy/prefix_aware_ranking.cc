#include "router/core/policy/prefix_aware_ranking.h"

#include "router/core/policy/cost_block.h"
#include "router/core/policy/pair_times.h"

namespace penstock {

WorkerSlot PrefixAwareRanking::Pick(const LegChoice& choice,
                                    Random& random) const {
  const PairTimes& times = choice.times;
  if (choice.leg == LegKind::kDecode) {
    return LeastOf(choice.open, random,
                   [&](auto&&... block) { times.Of(block...); });
  }
  return LeastOf(
      choice.open, random, [&](auto&&... block) { times.PrefillEnd(block...); },
      [&](size_t word) { return times.LeastPrefillEnd(word); });
}

}  // namespace penstock
