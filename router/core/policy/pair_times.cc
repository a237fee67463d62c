#include "router/core/policy/pair_times.h"

#include <bit>
#include <optional>

namespace penstock {

PairTimes::PairTimes(const RequestFacts& request, const ClusterView& view,
                     const Candidates& candidates, const PlacementCost& cost)
    : request_(request),
      columns_(view.columns),
      candidates_(candidates),
      cost_(cost),
      spills_(cost.spills()),
      one_pairing_(view.OnlyPairing().has_value()),
      decode_share_(cost.DecodeShare(request)),
      least_prefill_end_(candidates.prefill.words(), kNever),
      partners_(view.pairings(), kNever) {
  FindPartners(view);
  for (int pairing = 0; pairing < view.pairings(); ++pairing) {
    cold_.push_back(PromptOf(0, pairing, false));
  }
}

void PairTimes::FindPartners(const ClusterView& view) {
  const SlotSet& prefill = candidates_.prefill;
  const std::optional<int> only = view.OnlyPairing();
  std::vector<double> least(view.pairings(), kNever);  // of those of a pairing
  CostBlock costs;
  for (size_t word = 0; word < prefill.words(); ++word) {
    const uint64_t members = prefill.Word(word);
    if (members == 0) continue;
    PrefillEnd(word, members, costs);
    least_prefill_end_[word] = costs.Least();
    if (only.has_value()) {
      least[*only] = LesserOf(least_prefill_end_[word], least[*only]);
      continue;
    }
    for (uint64_t left = members; left != 0; left &= left - 1) {
      const int i = std::countr_zero(left);
      double& its = least[columns_.pairing[word * CostBlock::kSlots + i]];
      its = LesserOf(costs[i], its);
    }
  }
  for (int from = 0; from < view.pairings(); ++from) {
    if (least[from] == kNever) continue;
    for (int to = 0; to < view.pairings(); ++to) {
      if (!view.CanHandOff(from, to)) continue;
      partners_[to] = LesserOf(least[from], partners_[to]);
    }
  }
}

PairTimes::Prompt PairTimes::PromptOf(int cached, int pairing,
                                      bool keeps) const {
  const int lacking = request_.prompt_tokens - cached;
  Prompt prompt;
  prompt.alone = Prefill(cached);
  const double partner = partners_[pairing];
  if (partner == kNever || lacking < cost_.local_prefill_tokens()) {
    return prompt;
  }
  prompt.pair = partner + cost_.Transfer(lacking);
  // Of what it keeps for this request it has the tail to compute.
  if (keeps) return prompt;
  if (!spills_) prompt.alone = kNever;
  prompt.stops = spills_;
  return prompt;
}

void PairTimes::Of(size_t word, uint64_t members, CostBlock& costs) const {
  const size_t first = word * CostBlock::kSlots;
  const int* cached = &candidates_.cached[first];
  const int* pairing = &columns_.pairing[first];
  // Most are alike; the others are looked at one by one.
  const int alike = std::countr_zero(members);
  const Prompt prompt = cached[alike] == 0
                            ? cold_[pairing[alike]]
                            : PromptOf(cached[alike], pairing[alike], false);
  for (size_t i = 0; i < CostBlock::kSlots; ++i) {
    costs[i] = Of(first + i, prompt);
  }
  uint64_t others = Differing(cached, cached[alike]) |
                    (one_pairing_ ? 0 : Differing(pairing, pairing[alike])) |
                    candidates_.keepers.Word(word);
  for (others &= members; others != 0; others &= others - 1) {
    const int i = std::countr_zero(others);
    costs[i] = Of(first + i);
  }
  costs.KeepOnly(members);
}

void PairTimes::PrefillEnd(size_t word, uint64_t members,
                           CostBlock& costs) const {
  const size_t first = word * CostBlock::kSlots;
  const int* cached = &candidates_.cached[first];
  const int alike = cached[std::countr_zero(members)];
  const double prefill = Prefill(alike);
  for (size_t i = 0; i < CostBlock::kSlots; ++i) {
    costs[i] = PrefillEnd(first + i, prefill);
  }
  uint64_t others = Differing(cached, alike) & members;
  for (; others != 0; others &= others - 1) {
    const int i = std::countr_zero(others);
    costs[i] = PrefillEnd(first + i);
  }
  costs.KeepOnly(members);
}

}  // namespace penstock
