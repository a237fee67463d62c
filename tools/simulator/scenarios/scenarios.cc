#include "tools/simulator/scenario.h"

namespace penstock {

const std::vector<Scenario>& Scenarios() {
  static const auto* scenarios = new std::vector<Scenario>{};
  return *scenarios;
}

}  // namespace penstock
