#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/cost/cost_model.h"
#include "common/engine/engine_probe.h"
#include "kvstore/core/block_census.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/prefix_cache.h"

namespace penstock {

// The pages under way between a worker's pool and the tier below it. Each
// block is pinned until the tier has let go of it, whatever becomes of the
// sequence that wanted it. Owned by the EngineLoop; single-threaded.
//
// Pages go down as soon as they are cold (cached, and held by nobody), not when
// they are evicted: then whoever needs a block finds one that can go at once,
// and a worker that is killed leaves behind what it had.
class TierTraffic {
 public:
  struct Ports {
    KvTier* tier = nullptr;  // null: there is none
    BlockPool* pool = nullptr;
    PrefixCache* cache = nullptr;
    const CostModel* cost = nullptr;
    EngineProbe* probe = nullptr;
    uint64_t page_bytes = 0;
  };

  // At most `max_stores` pages go down at a time.
  TierTraffic(Ports ports, int max_stores);

  // There is a tier, and it answers.
  bool usable() const { return ports_.tier != nullptr && late_ == 0; }
  // Precondition: usable.
  TierLookup Lookup(absl::Span<const BlockHash> chain);

  // Brings pages into blocks that `owner` holds. Precondition: usable.
  TierTicket Fetch(SequenceId owner, std::vector<TierRead> reads);

  // The owner wants no more of it. `late`: it waited long enough; the tier
  // counts as unusable until it has let go.
  void Drop(TierTicket fetch, bool late);

  // Offers what is cold. True when a page went on its way.
  bool StoreCold();

  // Handles what has completed, up to and with the next page of a fetch that
  // was not dropped.
  struct Arrival {
    SequenceId owner;
    int page = 0;  // among the reads
    absl::Status status;
  };
  std::optional<Arrival> Poll();

  void CountBlocks(BlockCensus& census) const;

  // Fetches and stores that have not ended.
  size_t under_way() const { return fetches_.size() + stores_.size(); }
  bool idle() const { return under_way() == 0; }

 private:
  struct Fetching {
    SequenceId owner;  // none: dropped
    bool late = false;
    std::vector<TransferPin> pins;
    int open = 0;  // pages that have not completed
  };

  std::optional<Arrival> FinishRead(const TierCompletion& completion);
  void FinishStore(const TierCompletion& completion);

  Ports ports_;
  size_t max_stores_;
  std::map<TierTicket, Fetching> fetches_;
  std::map<TierTicket, TransferPin> stores_;
  int late_ = 0;       // fetches given up as late that have not ended
  bool busy_ = false;  // the tier takes no page until one is done
};

}  // namespace penstock
