#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/page_label.h"

namespace penstock {

// A tier of a simulated host. The shares are of pages, drawn for each.
struct SimTierOptions {
  int pages = 0;  // that it holds; 0: the host has no tier
  absl::Duration wait = absl::Microseconds(100);
  absl::Duration each = absl::Microseconds(200);
  // Predicts so many times what it really takes.
  double foresight = 1;
  bool asks = false;    // has to ask before it knows what it holds
  bool picky = false;   // finds one page in 16 not worth keeping
  double missing = 0;   // gone when they are wanted
  double fails = 0;     // cannot be read or written now
  double corrupt = 0;   // a bit flips, between being stored and being verified
  double confused = 0;  // another block's page comes
  double late = 0;      // `lateness` later
  absl::Duration lateness = absl::Seconds(3);

  friend bool operator==(const SimTierOptions&,
                         const SimTierOptions&) = default;
};

// What a host's tier holds: stays when the processes that use it die.
class SimTierPages {
 public:
  struct Page {
    PageLabel label;
    std::vector<uint8_t> bytes;
  };
  const Page* Find(BlockHash hash) const;
  // Makes room among `most` by letting the oldest go.
  void Put(Page page, int most);
  void Erase(BlockHash hash) { pages_.erase(hash); }
  // Any page but that of `hash`; null: there is none.
  const Page* Other(BlockHash hash) const;
  size_t size() const { return pages_.size(); }

 private:
  std::map<BlockHash, Page> pages_;
  std::deque<BlockHash> order_;
};

// One process's use of it: moves pages in the world's time, one after another,
// with the faults that are asked for. What it gives is verified as production
// tiers do. Single-threaded.
class SimTier : public KvTier {
 public:
  struct Ports {
    SimTierPages* held = nullptr;
    const Clock* clock = nullptr;  // the world's
    Timers* timers = nullptr;
    std::function<void(BlockIndex)> on_write;  // a block was written into
  };
  // `worker.wake` runs from timers only.
  SimTier(SimTierOptions options, TierWorker worker, uint64_t seed,
          Ports ports);
  ~SimTier() override;

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

 private:
  struct Job {
    TierKey key;
    BlockRef block;
    bool store = false;
    TimerId timer = 0;
  };
  using JobId = std::pair<TierTicket, int>;

  bool Chance(double share) { return random_.Uniform() < share; }
  void Begin(TierTicket ticket, int page, Job job, absl::Duration takes);
  void Finish(JobId id);
  void Complete(JobId id, absl::Status status);
  absl::Status Read(const Job& job);
  absl::Status Write(const Job& job);
  std::vector<absl::Span<uint8_t>> PageOf(BlockRef block) const;

  const SimTierOptions options_;
  const TierWorker worker_;
  SeededRandom random_;
  Ports ports_;
  std::map<JobId, Job> jobs_;
  std::deque<TierCompletion> done_;
  std::set<BlockHash> asked_;  // known to be held or not
  std::map<uint64_t, TimerId> wakes_;
  Instant free_at_;
  TierTicket next_ticket_ = 1;
  uint64_t next_wake_ = 1;
};

}  // namespace penstock
