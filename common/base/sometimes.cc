#include "common/base/sometimes.h"

#include <algorithm>

namespace penstock {
namespace {

// Filled before main; never changed afterwards.
std::vector<CoverageMark*>& Registry() {
  static auto* marks = new std::vector<CoverageMark*>;
  return *marks;
}

}  // namespace

CoverageMark::CoverageMark(const char* text) : text_(text) {
  Registry().push_back(this);
}

std::vector<MarkCount> CoverageMarks() {
  std::vector<MarkCount> counts;
  for (const CoverageMark* mark : Registry()) {
    counts.push_back({std::string(mark->text()), mark->hits()});
  }
  std::sort(
      counts.begin(), counts.end(),
      [](const MarkCount& a, const MarkCount& b) { return a.text < b.text; });
  return counts;
}

void ResetCoverageMarks() {
  for (CoverageMark* mark : Registry()) mark->Reset();
}

}  // namespace penstock
