#include "router/core/policy/placement_cost.h"

#include <algorithm>

#include "common/model/kv_layout.h"

namespace penstock {

int PlacementCost::Steps(const RequestFacts& request) const {
  return std::min(request.max_tokens, expected_tokens_);
}

double PlacementCost::Transfer(int tokens) const {
  return absl::ToDoubleSeconds(
      cost_.Transfer(int64_t{tokens} * kv_bytes_per_token_));
}

double PlacementCost::DecodeShare(const RequestFacts& request) const {
  return absl::ToDoubleSeconds(
      cost_.DecodeShare(Steps(request), request.prompt_tokens));
}

absl::Duration PlacementCost::Prompt(const RequestFacts& request,
                                     const WorkerPace& pace, int cached) const {
  return Paced(cost_.Prefill(request.prompt_tokens - cached, cached),
               pace.prefill);
}

LoadShare PlacementCost::DecodeLoad(const RequestFacts& request,
                                    const WorkerPace& pace, int cached,
                                    bool alone) const {
  const int steps = Steps(request);
  const int blocks = BlocksFor(request.prompt_tokens + steps);
  // Each answer beyond the first shares the prompt's full blocks.
  const int own_blocks = blocks - request.prompt_tokens / kBlockTokens;
  LoadShare load = {
      Paced(cost_.DecodeShare(steps, request.prompt_tokens) * request.answers,
            pace.decode),
      request.answers, blocks + (request.answers - 1) * own_blocks};
  if (alone) load.time += Prompt(request, pace, cached);
  return load;
}

LoadShare PlacementCost::PrefillLoad(const RequestFacts& request,
                                     const WorkerPace& pace, int cached) const {
  return {Prompt(request, pace, cached), 1,
          static_cast<int>(BlocksFor(request.prompt_tokens))};
}

}  // namespace penstock
