#include "router/core/policy/decision_recorder.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock {
namespace {

template <typename Cost>
DecisionRecord::Leg LegOf(const MadeDecision& made, const SlotSet& open,
                          WorkerSlot chosen, Cost cost) {
  std::vector<std::pair<double, WorkerSlot>> costs;
  open.ForEach([&](size_t slot) {
    costs.emplace_back(cost(slot), static_cast<WorkerSlot>(slot));
  });
  auto candidate = [&](double seconds, WorkerSlot slot) {
    return DecisionRecord::Candidate{made.view.At(slot).info.key.name,
                                     made.candidates.cached[slot],
                                     absl::Seconds(seconds)};
  };
  DecisionRecord::Leg leg;
  leg.candidates = static_cast<int>(costs.size());
  leg.chosen = candidate(cost(chosen), chosen);
  const size_t best = std::min<size_t>(costs.size(), DecisionRecord::kBest);
  std::partial_sort(costs.begin(), costs.begin() + best, costs.end());
  for (size_t i = 0; i < best; ++i) {
    leg.best.push_back(candidate(costs[i].first, costs[i].second));
  }
  return leg;
}

}  // namespace

std::shared_ptr<const DecisionRecord> RecordDecision(const MadeDecision& made) {
  auto record = std::make_shared<DecisionRecord>();
  record->policy = PolicyName(made.policy);
  record->decode = LegOf(made, made.candidates.decode, made.decode,
                         [&](size_t slot) { return made.times.Of(slot); });
  if (made.prefill.has_value()) {
    record->prefill =
        LegOf(made, made.partners, *made.prefill,
              [&](size_t slot) { return made.times.PrefillEnd(slot); });
  }
  return record;
}

}  // namespace penstock
