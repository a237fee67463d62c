#pragma once

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// Where the KV of a prompt's next blocks comes from: those from where the pool
// ends up to `compute_until` are computed while those from there up to
// `fetch_until` are fetched.
struct Acquisition {
  int compute_until = 0;
  int fetch_until = 0;  // the same: nothing is fetched
  absl::Duration took;  // predicted, for all of them

  bool fetches() const { return compute_until < fetch_until; }
};

struct AcquisitionFacts {
  int have = 0;      // leading blocks that the pool has
  TierLookup below;  // what a tier has of the blocks after those
  // Computing takes so many times as long as the model says.
  double pace = 1;
};

// Fetches all that the tier has, or the rear part of it while the front part is
// computed, or nothing: whatever is there first. Computing beside a fetch has
// to gain a fair part of the time to be worth what it costs others. Pure.
Acquisition PlanAcquisition(const AcquisitionFacts& facts,
                            const CostModel& cost);

}  // namespace penstock
