#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kvstore/core/kv_tier.h"
#include "tests/contract/tier_bench.h"

namespace penstock {

// One of the tiers that the suite runs over.
struct TierMaker {
  std::string name;
  // Null: the machine does not permit this kind.
  std::function<std::unique_ptr<KvTier>(
      TierBench& bench, const std::string& folder, uint64_t max_bytes)>
      make;
  // A page that is asked for as another block is gone at once. Not so where a
  // second tier holds it too.
  bool forgets = true;

  friend std::ostream& operator<<(std::ostream& out, const TierMaker& maker) {
    return out << maker.name;
  }
};

std::vector<TierMaker> TierMakers();

}  // namespace penstock
