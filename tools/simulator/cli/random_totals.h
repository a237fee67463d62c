#pragma once

#include <ostream>
#include <vector>

#include "common/base/sometimes.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {

// The sum of many runs' reports.
class RandomTotals {
 public:
  void Add(const SimReport& report);
  // Rates are per second of `seconds`.
  void Print(double seconds, std::ostream& out) const;

  int64_t runs() const { return runs_; }
  int64_t broken() const { return broken_; }

 private:
  int64_t runs_ = 0;
  int64_t broken_ = 0;
  SimReport sum_;
};

// Each mark with its count, those that never fired last; how many those are.
int PrintMarks(const std::vector<MarkCount>& marks, std::ostream& out);

}  // namespace penstock
