#pragma once

#include <limits>
#include <vector>

#include "common/env/random.h"
#include "router/core/slot_set.h"

namespace penstock {

// A member whose `cost` is least: of several one at random, by one draw.
// Precondition: `slots` is not empty, and no cost is NaN.
template <typename Cost>
size_t LeastOf(const SlotSet& slots, Random& random, Cost cost) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<size_t> ties;
  slots.ForEach([&](size_t slot) {
    const double its = cost(slot);
    if (its > least) return;
    if (its < least) ties.clear();
    least = its;
    ties.push_back(slot);
  });
  return ties[random.Below(ties.size())];
}

}  // namespace penstock
