#pragma once

#include <limits>

#include "common/env/random.h"
#include "router/core/slot_set.h"

namespace penstock {

// A member whose `cost` is least: of several one at random, by one draw.
// Precondition: `slots` is not empty, and no cost is NaN.
template <typename Cost>
size_t LeastOf(const SlotSet& slots, Random& random, Cost cost) {
  double least = std::numeric_limits<double>::infinity();
  size_t ties = 0;
  slots.ForEach([&](size_t slot) {
    const double its = cost(slot);
    ties = its < least ? 1 : ties + (its == least ? 1 : 0);
    least = its < least ? its : least;
  });
  size_t rank = random.Below(ties);
  size_t chosen = 0;
  slots.ForEach([&](size_t slot) {
    if (cost(slot) == least && rank-- == 0) chosen = slot;
  });
  return chosen;
}

}  // namespace penstock
