#pragma once

#include <vector>

#include "tools/simulator/scenario.h"

namespace penstock {

// The scenarios of one subject each; Scenarios() has all of them.
std::vector<Scenario> HandoffScenarios();
std::vector<Scenario> LeaseScenarios();
std::vector<Scenario> IdentityScenarios();
std::vector<Scenario> SchedulingScenarios();
std::vector<Scenario> CacheScenarios();
std::vector<Scenario> RoutingScenarios();
std::vector<Scenario> AnswerScenarios();
std::vector<Scenario> ContinuationScenarios();
std::vector<Scenario> KeptScenarios();

}  // namespace penstock
