#pragma once

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "kvstore/core/block_census.h"
#include "kvstore/core/block_pool.h"

namespace penstock {

// KV of requests whose leg ended here through no fault of this worker, held
// for the leg of their next attempt: a prefill whose decode worker died, a
// decode worker with verified pages of a prefill that died, one that drains.
// What is kept is given up when its lease ends, or earlier to whoever needs the
// blocks. Owned by the WorkerCore; single-threaded.
class KeptKv {
 public:
  // What was kept first goes for more than these.
  static constexpr size_t kMostRequests = 1024;

  // Pages of the first `computed` of `tokens`, in order.
  struct Prefix {
    std::vector<TokenId> tokens;
    std::vector<BlockHold> blocks;
    int computed = 0;
  };

  KeptKv(absl::Duration lease, const Clock* clock, Timers* timers);
  ~KeptKv();

  // Replaces what was kept of the request. Precondition: computed > 0, and no
  // more than `tokens` and `blocks` hold; nobody writes into the blocks.
  // Returns `computed`.
  int Keep(RequestId request, Prefix prefix);

  // Gives what fits `history` to the request's next leg: `computed` is cut to
  // the tokens that both have in common, and `blocks` to what holds them. Empty
  // when nothing is kept or fits. Either way nothing stays kept.
  Prefix Take(RequestId request, absl::Span<const TokenId> history);

  // How many leading tokens Take would give.
  int Look(RequestId request, absl::Span<const TokenId> history) const;

  bool Has(RequestId request) const { return kept_.contains(request); }
  // Begins the lease of what is kept of the request anew, if anything is: its
  // next leg is here, and waits.
  void Renew(RequestId request);
  bool empty() const { return kept_.empty(); }
  size_t size() const { return kept_.size(); }
  // Lets the one go that was kept first. False: nothing is kept.
  bool DropOldest();

  void CountBlocks(BlockCensus& census) const;

 private:
  struct Entry {
    Prefix prefix;
    TimerId expiry = 0;
    uint64_t order = 0;
  };

  // Precondition: not empty.
  RequestId Oldest() const;
  void Drop(RequestId request);
  TimerId ArmExpiry(RequestId request);

  absl::Duration lease_;
  const Clock* clock_;
  Timers* timers_;
  std::map<RequestId, Entry> kept_;
  uint64_t next_order_ = 1;
};

}  // namespace penstock
