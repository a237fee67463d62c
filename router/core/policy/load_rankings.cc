#include "router/core/policy/load_rankings.h"

#include "router/core/policy/cost_block.h"

namespace penstock {

WorkerSlot RoundRobinRanking::Pick(const LegChoice& choice, Random&) const {
  return choice.open.After(choice.view.memory.last(choice.leg));
}

WorkerSlot RandomRanking::Pick(const LegChoice& choice, Random& random) const {
  return choice.open.Nth(random.Below(choice.open.count()));
}

WorkerSlot PowerOfTwoRanking::Pick(const LegChoice& choice,
                                   Random& random) const {
  const size_t count = choice.open.count();
  const size_t one = random.Below(count);
  if (count == 1) return choice.open.Nth(one);
  // Among the others.
  const size_t other = (one + 1 + random.Below(count - 1)) % count;
  const WorkerSlot a = choice.open.Nth(one), b = choice.open.Nth(other);
  const std::vector<double>& ahead = choice.view.columns.ahead;
  return ahead[b] < ahead[a] ? b : a;
}

WorkerSlot LeastLoadRanking::Pick(const LegChoice& choice,
                                  Random& random) const {
  const std::vector<double>& ahead = choice.view.columns.ahead;
  return LeastOf(choice.open, random,
                 [&](size_t word, uint64_t members, CostBlock& costs) {
                   for (size_t i = 0; i < CostBlock::kSlots; ++i) {
                     costs[i] = ahead[word * CostBlock::kSlots + i];
                   }
                   costs.KeepOnly(members);
                 });
}

}  // namespace penstock
