#include "router/core/policy/candidates.h"

#include <algorithm>

#include "common/base/sometimes.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

struct Pool {
  SlotSet open;
  bool ready = false, large_enough = false;
};

// What an attempt needs of a worker's memory.
struct Need {
  int64_t prompt = 0;
  int64_t generated = 0;  // in each of `beams` answers at once
  int beams = 1;
};

bool BeamsFit(const Need& need, const WorkerInfo& info) {
  // A worker stops at its context, whatever was asked.
  int64_t tokens = need.prompt + need.generated;
  if (info.context_length > 0) {
    tokens = std::min<int64_t>(tokens, info.context_length);
  }
  // Beams share the prompt's full blocks.
  const int64_t shared = need.prompt / kBlockTokens;
  return shared + need.beams * (BlocksFor(tokens) - shared) <=
         info.total_blocks;
}

SlotSet LargeEnough(const Need& need, SlotSet slots, const ClusterView& view) {
  const WorkerColumns& columns = view.columns;
  const int64_t tokens = need.prompt + need.generated;
  if (need.beams == 1 && tokens <= columns.least_capacity &&
      need.prompt <= columns.least_context) {
    return slots;
  }
  SlotSet small(slots.size());
  slots.ForEach([&](size_t slot) {
    const bool fits = need.beams == 1 ? tokens <= columns.capacity[slot]
                                      : BeamsFit(need, view.At(slot).info);
    if (!fits || need.prompt > columns.context[slot]) small.Set(slot);
  });
  return slots -= small;
}

// Of those that would do, by role and health.
Pool PoolOf(SlotSet slots, const Need& need, const SlotSet& keepers,
            const ClusterView& view) {
  const SlotSet on_time = slots & view.columns.on_time;
  if (!on_time.empty()) slots = on_time;
  Pool pool;
  pool.ready = !slots.empty();
  pool.open = LargeEnough(need, std::move(slots), view);
  pool.large_enough = !pool.open.empty();
  pool.open &= view.columns.room | keepers;
  return pool;
}

SlotSet AvoidedOf(const RequestFacts& request, const ClusterView& view) {
  SlotSet avoided(view.columns.ready.size());
  for (const std::string& name : request.avoid) {
    const WorkerView* worker = view.FindName(name);
    if (worker != nullptr) avoided.Set(worker->slot);
  }
  return avoided;
}

void FillHoldings(const RequestFacts& request, const ClusterView& view,
                  Candidates& candidates) {
  const size_t slots = view.columns.ready.size();
  const int most = request.prompt_tokens - 1;
  candidates.cached.assign(slots, 0);
  candidates.keepers = SlotSet(slots);
  const PrefixMatch match = view.prefixes != nullptr
                                ? view.prefixes->Match(request.chain)
                                : PrefixMatch();
  if (!match.empty()) {
    match.CopyTo(absl::MakeSpan(candidates.cached));
    // A worker takes whole blocks from its cache, and computes the last token.
    for (int& cached : candidates.cached) {
      cached = std::min(cached, most / kBlockTokens) * kBlockTokens;
    }
  }
  for (const KeptPrefix& kept : request.kept) {
    const WorkerView* worker = view.Find(kept.worker);
    if (worker == nullptr || kept.tokens <= 0) continue;
    candidates.keepers.Set(worker->slot);
    int& cached = candidates.cached[worker->slot];
    cached = std::max(cached, std::min(kept.tokens, most));
  }
}

}  // namespace

Candidates Candidates::Of(const RequestFacts& request,
                          const ClusterView& view) {
  const WorkerColumns& columns = view.columns;
  Candidates candidates;
  FillHoldings(request, view, candidates);
  const SlotSet& keepers = candidates.keepers;
  const SlotSet avoided = AvoidedOf(request, view);

  const Need whole = {request.prompt_tokens, request.max_tokens,
                      request.beams ? request.answers : 1};
  const SlotSet decodes = columns.decode - avoided;
  Pool pool = PoolOf(decodes & columns.ready, whole, keepers, view);
  if (pool.open.empty()) {
    Pool back =
        PoolOf(decodes & keepers & columns.draining, whole, keepers, view);
    if (!back.open.empty()) {
      Sometimes<"a draining worker took back what it keeps">();
      pool = std::move(back);
    }
  }
  candidates.decode = std::move(pool.open);
  candidates.decode_ready = pool.ready;
  candidates.decode_large_enough = pool.large_enough;

  candidates.prefill = SlotSet(columns.ready.size());
  if (request.decode_alone) return candidates;
  const SlotSet has_role = (columns.prefill & columns.ready) - avoided;
  const SlotSet keeps =
      (keepers & (columns.ready | columns.draining)) - columns.vetoed_prefill;
  pool = PoolOf(has_role | keeps, {request.prompt_tokens}, keepers, view);
  candidates.prefill = std::move(pool.open);
  candidates.prefill_large_enough = pool.large_enough;
  return candidates;
}

SlotSet Candidates::PartnersOf(WorkerSlot decode,
                               const ClusterView& view) const {
  const std::vector<int>& pairing = view.columns.pairing;
  if (const auto only = view.OnlyPairing();
      only.has_value() && view.CanHandOff(*only, *only)) {
    return prefill;
  }
  SlotSet partners(prefill.size());
  prefill.ForEach([&](size_t slot) {
    if (view.CanHandOff(pairing[slot], pairing[decode])) partners.Set(slot);
  });
  return partners;
}

}  // namespace penstock
