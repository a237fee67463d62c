#include "router/core/policy/prefix_aware_ranking.h"

#include "router/core/policy/least_of.h"
#include "router/core/policy/pair_times.h"

namespace penstock {

WorkerSlot PrefixAwareRanking::Pick(const LegChoice& choice,
                                    Random& random) const {
  const PairTimes& times = choice.times;
  if (choice.leg == LegKind::kDecode) {
    return LeastOf(choice.open, random,
                   [&](size_t slot) { return times.Of(slot); });
  }
  return LeastOf(choice.open, random,
                 [&](size_t slot) { return times.PrefillEnd(slot); });
}

}  // namespace penstock
