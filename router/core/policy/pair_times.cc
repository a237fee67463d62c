#include "router/core/policy/pair_times.h"

namespace penstock {

PairTimes::PairTimes(const RequestFacts& request, const ClusterView& view,
                     const Candidates& candidates, const PlacementCost& cost)
    : request_(request),
      columns_(view.columns),
      candidates_(candidates),
      cost_(cost),
      spills_(cost.spills()),
      decode_share_(cost.DecodeShare(request)),
      cold_alone_(cost.Prefill(request.prompt_tokens, 0)),
      cold_pairs_(view.pairings(), kNoPair),
      partners_(view.pairings(), kNoPair) {
  FindPartners(view);
  if (request.prompt_tokens < cost.local_prefill_tokens()) return;
  const double transfer = cost.Transfer(request.prompt_tokens);
  for (size_t i = 0; i < partners_.size(); ++i) {
    cold_pairs_[i] = partners_[i] + transfer;
  }
}

void PairTimes::FindPartners(const ClusterView& view) {
  std::vector<double> least(view.pairings(), kNoPair);
  candidates_.prefill.ForEach([&](size_t slot) {
    double& its = least[columns_.pairing[slot]];
    its = LesserOf(PrefillEnd(slot), its);
  });
  for (int from = 0; from < view.pairings(); ++from) {
    if (least[from] == kNoPair) continue;
    for (int to = 0; to < view.pairings(); ++to) {
      if (!view.CanHandOff(from, to)) continue;
      partners_[to] = LesserOf(least[from], partners_[to]);
    }
  }
}

PairTimes::Prompt PairTimes::PromptOf(WorkerSlot decode) const {
  const int cached = candidates_.cached[decode];
  const int lacking = request_.prompt_tokens - cached;
  Prompt prompt;
  prompt.alone = Prefill(cached);
  const double partner = partners_[columns_.pairing[decode]];
  if (partner == kNoPair || lacking < cost_.local_prefill_tokens()) {
    return prompt;
  }
  prompt.pair = partner + cost_.Transfer(lacking);
  // Of what it keeps for this request it has the tail to compute.
  if (candidates_.keepers.Contains(decode)) return prompt;
  prompt.alone = spills_ ? prompt.alone * (1 + Stopped(decode)) : kNoPair;
  return prompt;
}

double PairTimes::WarmPromptTime(WorkerSlot decode) const {
  const Prompt prompt = PromptOf(decode);
  return LesserOf(prompt.alone, prompt.pair);
}

bool PairTimes::Alone(WorkerSlot decode) const {
  const Prompt prompt = PromptOf(decode);
  return prompt.alone <= prompt.pair;
}

}  // namespace penstock
