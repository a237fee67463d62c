#include "common/engine/acquisition.h"

#include <algorithm>

#include "common/model/kv_layout.h"

namespace penstock {
namespace {

// A fetch that gains less is not worth its risk.
constexpr absl::Duration kLeastGain = absl::Milliseconds(1);

// Of the time of fetching everything: what computing beside it has to leave.
constexpr double kSplitShare = 0.75;

}  // namespace

Acquisition PlanAcquisition(const AcquisitionFacts& facts,
                            const CostModel& cost) {
  const TierLookup& below = facts.below;
  const int end = facts.have + below.blocks;
  Acquisition none{end, end, {}};
  if (below.blocks <= 0) return none;
  const auto compute = [&](int until) {
    return cost.Prefill((until - facts.have) * kBlockTokens,
                        facts.have * kBlockTokens) *
           facts.pace;
  };
  const auto fetch = [&](int from) {
    return below.wait + below.each * static_cast<double>(end - from);
  };
  Acquisition all{facts.have, end, fetch(facts.have)};
  // The first block up to which computing takes no less than fetching the rest.
  int low = facts.have;
  int high = end;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (compute(middle) < fetch(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  Acquisition split{low, end, std::max(compute(low), fetch(low))};
  const bool worth_it = split.fetches() && split.took < all.took * kSplitShare;
  const Acquisition& best = worth_it ? split : all;
  return best.took + kLeastGain <= compute(end) ? best : none;
}

}  // namespace penstock
