#pragma once

#include "router/core/policy/leg_ranking.h"
#include "router/core/policy/load_rankings.h"

namespace penstock {

// Rankings that send like requests to one worker without knowing what is cached
// there.

// Who served the session's leg before, while it may be chosen; else, and for
// requests of no session, the least loaded one.
class SessionStickyRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;

 private:
  LeastLoadRanking others_;
};

// Rendezvous hashing of the session, or of how the prompt begins, among workers
// that have at most a quarter more requests than the mean: when one comes or
// goes, only what it has or had moves.
class ConsistentHashRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

}  // namespace penstock
