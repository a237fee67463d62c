#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/base/id.h"
#include "common/env/clock.h"
#include "router/core/decision_record.h"
#include "router/core/hit_watch.h"
#include "router/core/router_probe.h"
#include "router/core/routing_policy.h"

namespace penstock {

// Keeps each placement until it is known what came of it, then tells the probe:
// every one in numbers, sampled ones with what there was to choose from, also
// in the log. Raises the alarm when believed and found hits part.
// Single-threaded; owned by the router core, whose clock and probe outlive it.
class DecisionJournal {
 public:
  // One of `every` decisions is recorded; 0: none.
  DecisionJournal(int every, const Clock* clock, RouterProbe* probe)
      : every_(every), clock_(clock), probe_(probe) {}

  // Is the next decision to be recorded?
  bool WantsRecord() const {
    return every_ > 0 && placed_ % static_cast<uint64_t>(every_) == 0;
  }

  // An attempt starts; the request's earlier one, if any, has failed.
  void Placed(const PlacementFacts& facts, const Placement& placement);
  // The attempt's first token, or its first again: then nothing is noted.
  void FirstToken(RequestId request);
  // The request ended; unknown ones are a no-op. `found`: of the prompt, cached
  // at the worker that prefilled; absent when it failed.
  void Ended(RequestId request, std::optional<int> found);

 private:
  struct Open {
    DecisionOutcome outcome;
    Instant placed;
  };
  void Judge(const DecisionOutcome& outcome);

  int every_;
  const Clock* clock_;
  RouterProbe* probe_;
  uint64_t placed_ = 0;
  std::map<RequestId, Open> open_;
  HitWatch watch_;
};

}  // namespace penstock
