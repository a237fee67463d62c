#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "router/core/policy/candidates.h"
#include "router/core/policy/cost_block.h"
#include "router/core/policy/placement_cost.h"
#include "router/core/routing_policy.h"

namespace penstock {

// What each decode worker would take for one request, in predicted seconds,
// with the best partner that it can have; and whether it needs one. Made for
// one decision: all that it refers to outlives it.
//
// Each time has two forms, of equal value to the last bit: one worker's, and
// 64 workers' for comparing thousands.
class PairTimes {
 public:
  PairTimes(const RequestFacts& request, const ClusterView& view,
            const Candidates& candidates, const PlacementCost& cost);

  // Until the request's last token: work ahead, the prompt and the rest.
  double Of(WorkerSlot decode) const { return Of(decode, PromptOf(decode)); }
  // Of those of 64 slots that are members, infinity for the others.
  void Of(size_t word, uint64_t members, CostBlock& costs) const;

  // Until the worker has computed the tokens of the prompt that it lacks, after
  // what it has to do already.
  double PrefillEnd(WorkerSlot prefill) const {
    return PrefillEnd(prefill, Prefill(candidates_.cached[prefill]));
  }
  void PrefillEnd(size_t word, uint64_t members, CostBlock& costs) const;

  // Of the prefill candidates among those 64 slots.
  double LeastPrefillEnd(size_t word) const { return least_prefill_end_[word]; }

  // Does it prefill by itself?
  bool Alone(WorkerSlot decode) const {
    const Prompt prompt = PromptOf(decode);
    return prompt.Alone(columns_.requests[decode],
                        columns_.prefill_pace[decode]) <= prompt.pair;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // As std::min, in a form that is one instruction.
  static double LesserOf(double a, double b) { return a < b ? a : b; }

  // Until a decode worker has the prompt's KV, beside its work ahead; the same
  // for all that have as much of the prompt and may have the same partners.
  struct Prompt {
    double alone = 0;    // by itself, at the assumed pace
    bool stops = false;  // which costs the answers that run there as much
    double pair = kNever;

    // With what stops, at least a few answers: more may start meanwhile.
    double Alone(int requests, double pace) const {
      const double its = alone * pace;
      return stops ? its * (1 + std::max(4, requests)) : its;
    }
    double Time(int requests, double pace) const {
      return LesserOf(Alone(requests, pace), pair);
    }
  };
  Prompt PromptOf(int cached, int pairing, bool keeps) const;
  Prompt PromptOf(WorkerSlot decode) const {
    const int cached = candidates_.cached[decode];
    const int pairing = columns_.pairing[decode];
    return cached == 0 ? cold_[pairing]
                       : PromptOf(cached, pairing,
                                  candidates_.keepers.Contains(decode));
  }
  double Of(size_t decode, const Prompt& prompt) const {
    return columns_.ahead[decode] + decode_share_ * columns_.stretch[decode] +
           prompt.Time(columns_.requests[decode],
                       columns_.prefill_pace[decode]);
  }
  double PrefillEnd(size_t prefill, double assumed) const {
    return columns_.ahead[prefill] + assumed * columns_.prefill_pace[prefill];
  }
  // Prefill behind so many cached tokens, at the assumed pace: many workers
  // have the same.
  double Prefill(int cached) const {
    if (cached != last_cached_) {
      last_cached_ = cached;
      last_prefill_ = cost_.Prefill(request_.prompt_tokens - cached, cached);
    }
    return last_prefill_;
  }
  void FindPartners(const ClusterView& view);

  const RequestFacts& request_;
  const WorkerColumns& columns_;
  const Candidates& candidates_;
  const PlacementCost& cost_;
  bool spills_;
  bool one_pairing_;
  double decode_share_;
  mutable int last_cached_ = -1;
  mutable double last_prefill_ = 0;
  std::vector<double> least_prefill_end_;  // of each 64 slots
  // By a decode worker's pairing: the least PrefillEnd of its partners, and
  // what the prompt takes where there is none of it.
  std::vector<double> partners_;
  std::vector<Prompt> cold_;
};

}  // namespace penstock
