#pragma once

#include "router/core/policy/leg_ranking.h"

namespace penstock {

// Rankings that know of a worker only its turn or its load.

// The next one after the leg before, by slot; each kind of leg by itself.
class RoundRobinRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

class RandomRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

// The one with less work ahead of two drawn at random.
class PowerOfTwoRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

// Least work ahead, in predicted time.
class LeastLoadRanking : public LegRanking {
 public:
  WorkerSlot Pick(const LegChoice& choice, Random& random) const override;
};

}  // namespace penstock
