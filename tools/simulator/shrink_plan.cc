#include <algorithm>
#include <utility>

#include "tools/simulator/sim_plan.h"

namespace penstock {
namespace {

// Delta debugging: leaves out runs of neighbours, long ones first.
class Shrinker {
 public:
  Shrinker(std::string promise, int max_runs, const PlanRunner& run)
      : promise_(std::move(promise)), left_(max_runs), run_(run) {}

  template <typename Item>
  void Drop(SimPlan& plan, std::vector<Item> SimPlan::*items) {
    for (size_t size = (plan.*items).size(); size > 0; size /= 2) {
      bool dropped = true;
      while (dropped) dropped = DropRuns(plan, items, size);
    }
  }

 private:
  // True when a second pass may drop more.
  template <typename Item>
  bool DropRuns(SimPlan& plan, std::vector<Item> SimPlan::*items, size_t size) {
    bool dropped = false;
    for (size_t at = 0; at < (plan.*items).size() && left_ > 0;) {
      SimPlan smaller = plan;
      std::vector<Item>& list = smaller.*items;
      const auto first = list.begin() + static_cast<int64_t>(at);
      list.erase(first, first + static_cast<int64_t>(
                                    std::min(size, list.size() - at)));
      if (StillBreaks(smaller)) {
        plan = std::move(smaller);
        dropped = true;
      } else {
        at += size;
      }
    }
    return dropped && left_ > 0;
  }

  bool StillBreaks(const SimPlan& plan) {
    --left_;
    return run_(plan).promise == promise_;
  }

  std::string promise_;
  int left_;
  const PlanRunner& run_;
};

}  // namespace

SimPlan Shrink(const SimPlan& plan, int max_runs, const PlanRunner& run) {
  SimPlan smaller = plan;
  Shrinker shrinker(run(plan).promise, max_runs - 1, run);
  shrinker.Drop(smaller, &SimPlan::faults);
  shrinker.Drop(smaller, &SimPlan::requests);
  // Without those requests some faults may not matter any more.
  shrinker.Drop(smaller, &SimPlan::faults);
  return smaller;
}

}  // namespace penstock
