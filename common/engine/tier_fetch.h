#pragma once

#include <limits>
#include <vector>

#include "common/env/timers.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// What one sequence gets from a tier: pages of consecutive blocks, in the
// order in which they happen to come, some of them never. Says how far the
// sequence may compute, and where it goes on past what has come. A value;
// owned by the engine's entry of the sequence.
class TierFetch {
 public:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();

  // Pages of blocks [first, first + pages). Precondition: pages > 0.
  TierFetch(TierTicket ticket, int first, int pages);

  TierTicket ticket() const { return ticket_; }
  int pages() const { return static_cast<int>(pages_.size()); }
  int pending() const { return pending_; }

  // A page has come, or will not. Ignored for pages that were given up.
  void SetPage(int page, bool there);

  // The first position from which on a sequence with `computed` of them
  // computes nothing: its page is there, or may still come.
  int Limit(int computed) const;

  // Where it goes on: past the pages that are there from `computed` on.
  int Skip(int computed) const;

  // Nothing that a sequence with `computed` positions could still use.
  bool Over(int computed) const {
    return pending_ == 0 && Limit(computed) == kNoLimit;
  }

  // Gives up what has not come, and all behind it. Returns the first block
  // given up. Precondition: pending() > 0.
  int GiveUp();

  // When it has to have come; the engine's.
  TimerId deadline = 0;
  // Counts as found in the prompt's first look.
  bool counts = false;

 private:
  enum class Page { kPending, kThere, kMissing };

  TierTicket ticket_;
  int first_;
  std::vector<Page> pages_;
  int pending_;
};

}  // namespace penstock
