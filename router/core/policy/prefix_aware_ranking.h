#pragma once

#include "router/core/policy/leg_ranking.h"

namespace penstock {

// Least predicted time for the request, work ahead included: a cached prefix
// counts as the time it saves, so a busy owner loses to an idle stranger
// exactly when waiting costs more than computing. A decode worker is judged by
// the best pair that it can be part of.
class PrefixAwareRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

}  // namespace penstock
