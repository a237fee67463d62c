#include "router/core/policy/placement_policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

absl::Status CheckDecode(const RequestFacts& request,
                         const Candidates& candidates) {
  if (!candidates.decode_ready) {
    return MakeError(ErrorReason::kNoWorkers,
                     "no decode worker is ready for this request");
  }
  if (!candidates.decode_large_enough) {
    return MakeError(
        ErrorReason::kKvTooSmall,
        absl::StrCat("a prompt of ", request.prompt_tokens, " tokens and ",
                     request.max_tokens,
                     " more to generate fit no decode worker's KV memory: "
                     "lower max_tokens, shorten the prompt or give the workers "
                     "more (--kv-memory)"),
        "max_tokens");
  }
  return absl::OkStatus();
}

}  // namespace

PlacementPolicy::PlacementPolicy(const PolicyOptions& options,
                                 const CostModel& cost)
    : options_(options),
      cost_(options, cost),
      ranking_(MakeRanking(options, cost)) {}

bool PlacementPolicy::PrefillsAlone(const RequestFacts& request,
                                    const ClusterView& view,
                                    const Candidates& candidates,
                                    WorkerSlot decode,
                                    const SlotSet& partners) const {
  if (!candidates.keepers.Contains(decode)) return false;
  // Of what it keeps, the rest may be sooner computed there.
  return cost_.Prefill(request, candidates, decode) <=
         cost_.LeastPrefillEnd(request, candidates, view, partners) +
             cost_.Transfer(request, candidates, decode);
}

absl::StatusOr<Placement> PlacementPolicy::Place(const RequestFacts& request,
                                                 const ClusterView& view,
                                                 Random& random) const {
  CHECK(request.prompt_tokens > 0 && request.max_tokens >= 0);
  const Candidates candidates = Candidates::Of(request, view);
  RETURN_IF_ERROR(CheckDecode(request, candidates));
  const absl::Status full =
      MakeError(ErrorReason::kQueueFull, "every worker is full", "",
                options_.retry_after);
  if (candidates.decode.empty()) return full;
  const WorkerSlot decode = ranking_->Pick(
      {LegKind::kDecode, request, view, candidates, candidates.decode}, random);
  const int cached = candidates.cached[decode];
  bool alone = request.prompt_tokens - cached < options_.local_prefill_tokens;
  SlotSet partners;
  if (!alone) {
    if (!candidates.keepers.Contains(decode) && candidates.prefill.empty() &&
        candidates.prefill_large_enough) {
      // Waiting for a place is better than stopping every decode for a prompt.
      return full;
    }
    partners = candidates.PartnersOf(decode, view);
    alone = partners.empty() ||
            PrefillsAlone(request, view, candidates, decode, partners);
  }

  Placement placement;
  placement.decode = {view.At(decode).info.key, cached,
                      cost_.DecodeLoad(request, candidates, decode, alone)};
  if (alone) return placement;
  const WorkerSlot prefill = ranking_->Pick(
      {LegKind::kPrefill, request, view, candidates, partners}, random);
  placement.prefill =
      LegPlacement{view.At(prefill).info.key, candidates.cached[prefill],
                   cost_.PrefillLoad(request, candidates, prefill)};
  return placement;
}

}  // namespace penstock
