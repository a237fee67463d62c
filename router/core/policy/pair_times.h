#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "router/core/policy/candidates.h"
#include "router/core/policy/placement_cost.h"
#include "router/core/routing_policy.h"

namespace penstock {

// What each decode worker would take for one request, in predicted seconds,
// with the best partner that it can have; and whether it needs one. Made for
// one decision: all that it refers to outlives it.
class PairTimes {
 public:
  PairTimes(const RequestFacts& request, const ClusterView& view,
            const Candidates& candidates, const PlacementCost& cost);

  // Until the request's last token: work ahead, the prompt and the rest.
  double Of(WorkerSlot decode) const {
    return columns_.ahead[decode] +
           decode_share_ * (1 + columns_.pressure[decode]) + PromptTime(decode);
  }
  // Until the worker has computed the tokens of the prompt that it lacks, after
  // what it has to do already.
  double PrefillEnd(WorkerSlot prefill) const {
    const int cached = candidates_.cached[prefill];
    return columns_.ahead[prefill] +
           (cached == 0 ? cold_alone_ : Prefill(cached));
  }
  // Until the decode worker has the prompt's KV, beside its work ahead.
  double PromptTime(WorkerSlot decode) const {
    if (candidates_.cached[decode] != 0) return WarmPromptTime(decode);
    const double pair = cold_pairs_[columns_.pairing[decode]];
    return pair == kNoPair ? cold_alone_ : LesserOf(Stopping(decode), pair);
  }
  // Does it prefill by itself?
  bool Alone(WorkerSlot decode) const;

 private:
  static constexpr double kNoPair = std::numeric_limits<double>::infinity();

  struct Prompt {
    double alone = 0;  // with what stops others meanwhile
    double pair = kNoPair;
  };
  Prompt PromptOf(WorkerSlot decode) const;
  double WarmPromptTime(WorkerSlot decode) const;
  // As std::min, in a form that is one instruction.
  static double LesserOf(double a, double b) { return a < b ? a : b; }
  // Prefill behind so many cached tokens: many workers have the same.
  double Prefill(int cached) const {
    if (cached != last_cached_) {
      last_cached_ = cached;
      last_prefill_ = cost_.Prefill(request_.prompt_tokens - cached, cached);
    }
    return last_prefill_;
  }
  // A prefill of all of the prompt on a decode worker, with what that stops.
  double Stopping(WorkerSlot decode) const {
    return spills_ ? cold_alone_ * (1 + Stopped(decode)) : kNoPair;
  }
  // Answers that a prefill there is taken to stop, at least a few: more of them
  // may start meanwhile.
  int Stopped(WorkerSlot decode) const {
    return std::max(4, columns_.requests[decode]);
  }
  void FindPartners(const ClusterView& view);

  const RequestFacts& request_;
  const WorkerColumns& columns_;
  const Candidates& candidates_;
  const PlacementCost& cost_;
  bool spills_;
  double decode_share_;
  // Of workers that have none of the prompt: prefilling alone, stopping nobody;
  // and by a decode worker's pairing, with the best partner.
  double cold_alone_;
  std::vector<double> cold_pairs_;
  // By a decode worker's pairing: the least PrefillEnd of its partners.
  std::vector<double> partners_;
  mutable int last_cached_ = -1;
  mutable double last_prefill_ = 0;
};

}  // namespace penstock
