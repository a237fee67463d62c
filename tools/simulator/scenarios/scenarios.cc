#include <algorithm>

#include "tools/simulator/scenarios/groups.h"

namespace penstock {

const std::vector<Scenario>& Scenarios() {
  static const auto* scenarios = [] {
    auto* all = new std::vector<Scenario>;
    for (auto* group :
         {HandoffScenarios, LeaseScenarios, IdentityScenarios,
          SchedulingScenarios, CacheScenarios, RoutingScenarios,
          AnswerScenarios, ContinuationScenarios, KeptScenarios}) {
      std::vector<Scenario> some = group();
      all->insert(all->end(), some.begin(), some.end());
    }
    std::stable_sort(all->begin(), all->end(),
                     [](const Scenario& a, const Scenario& b) {
                       return a.rows[0] < b.rows[0];
                     });
    return all;
  }();
  return *scenarios;
}

}  // namespace penstock
