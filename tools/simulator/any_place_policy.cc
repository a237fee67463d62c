#include "tools/simulator/any_place_policy.h"

#include <algorithm>
#include <vector>

#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

bool Avoided(const RequestFacts& request, const WorkerInfo& info) {
  return std::find(request.avoid.begin(), request.avoid.end(), info.key.name) !=
         request.avoid.end();
}

int Kept(const RequestFacts& request, const WorkerKey& worker) {
  for (const KeptPrefix& kept : request.kept) {
    if (kept.worker == worker) return kept.tokens;
  }
  return 0;
}

// Each answer might need all of the tokens for itself.
bool Holds(const WorkerInfo& info, const RequestFacts& request, int generated,
           int answers) {
  const int most = std::min(request.prompt_tokens + generated,
                            std::max(info.context_length, 1));
  return int64_t{answers} * BlocksFor(most) <= info.total_blocks;
}

LegPlacement PlacementOn(const RequestFacts& request, const WorkerView& worker,
                         int cached_blocks, int generated) {
  LegPlacement leg;
  leg.worker = worker.info.key;
  leg.cached_tokens = std::min(
      std::max(cached_blocks * kBlockTokens, Kept(request, worker.info.key)),
      request.prompt_tokens - 1);
  leg.load = {absl::Milliseconds(1), 1,
              static_cast<int>(BlocksFor(request.prompt_tokens + generated))};
  return leg;
}

}  // namespace

absl::StatusOr<Placement> AnyPlacePolicy::Place(const RequestFacts& request,
                                                const ClusterView& view,
                                                Random& random) const {
  ASSIGN_OR_RETURN(Placement placement, usual_->Place(request, view, random));
  if (random.Below(4) == 0) return placement;
  const std::vector<int> cached = view.CachedBlocks(request.chain);
  std::vector<LegPlacement> decodes, prefills;
  auto blocks = cached.begin();
  for (const auto& [name, worker] : view.workers) {
    const int its = *blocks++;
    const WorkerInfo& info = worker.info;
    const bool open = worker.ready() && !Avoided(request, info);
    if (open && info.roles.decode && !worker.vetoed.decode &&
        Holds(info, request, request.max_tokens,
              request.beams ? request.answers : 1)) {
      decodes.push_back(PlacementOn(request, worker, its, request.max_tokens));
    }
    const bool keeps =
        Kept(request, info.key) > 0 && (worker.ready() || worker.drains());
    const bool computes = open && info.roles.prefill && !worker.vetoed.prefill;
    if ((computes || keeps) && Holds(info, request, 0, 1)) {
      prefills.push_back(PlacementOn(request, worker, its, 0));
    }
  }
  if (!decodes.empty()) {
    placement.decode = decodes[random.Below(decodes.size())];
  }
  placement.prefill.reset();
  if (!prefills.empty() && !request.decode_alone && random.Below(4) != 0) {
    placement.prefill = prefills[random.Below(prefills.size())];
  }
  return placement;
}

}  // namespace penstock
