#include "router/core/policy/placement_policy.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "router/core/policy/decision_recorder.h"
#include "router/core/policy/pair_times.h"

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
      ranking_(MakeRanking(options.kind)) {}

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
  const PairTimes times(request, view, candidates, cost_);
  const WorkerSlot decode = ranking_->Pick(
      {LegKind::kDecode, request, view, candidates, times, candidates.decode},
      random);
  const int cached = candidates.cached[decode];
  const bool alone = times.Alone(decode);
  if (alone && candidates.prefill.empty() && candidates.prefill_large_enough &&
      !candidates.keepers.Contains(decode) &&
      request.prompt_tokens - cached >= options_.local_prefill_tokens) {
    // Waiting for a place is better than stopping every decode for a prompt.
    return full;
  }

  Placement placement;
  const WorkerView& worker = view.At(decode);
  placement.decode = {worker.info.key, cached,
                      cost_.DecodeLoad(request, worker.pace, cached, alone)};
  placement.first_token =
      absl::Seconds(cost_.Prefill(request.prompt_tokens - cached, cached) *
                    worker.pace.prefill);
  std::optional<WorkerSlot> prefill;
  SlotSet partners;
  if (!alone) {
    partners = candidates.PartnersOf(decode, view);
    prefill = ranking_->Pick(
        {LegKind::kPrefill, request, view, candidates, times, partners},
        random);
    const WorkerView& partner = view.At(*prefill);
    const int hit = candidates.cached[*prefill];
    placement.prefill = LegPlacement{
        partner.info.key, hit, cost_.PrefillLoad(request, partner.pace, hit)};
    placement.first_token = absl::Seconds(times.PrefillEnd(*prefill));
  }
  if (request.record) {
    placement.record = RecordDecision(
        {options_.kind, view, candidates, times, decode, prefill, partners});
  }
  return placement;
}

}  // namespace penstock
