#include <memory>

#include "router/core/policy/affinity_rankings.h"
#include "router/core/policy/leg_ranking.h"
#include "router/core/policy/load_rankings.h"
#include "router/core/policy/prefix_aware_ranking.h"

namespace penstock {

std::unique_ptr<const LegRanking> MakeRanking(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kPrefixAware:
      break;
    case PolicyKind::kLeastLoad:
      return std::make_unique<LeastLoadRanking>();
    case PolicyKind::kRoundRobin:
      return std::make_unique<RoundRobinRanking>();
    case PolicyKind::kRandom:
      return std::make_unique<RandomRanking>();
    case PolicyKind::kPowerOfTwo:
      return std::make_unique<PowerOfTwoRanking>();
    case PolicyKind::kSessionSticky:
      return std::make_unique<SessionStickyRanking>();
    case PolicyKind::kConsistentHash:
      return std::make_unique<ConsistentHashRanking>();
  }
  return std::make_unique<PrefixAwareRanking>();
}

}  // namespace penstock
