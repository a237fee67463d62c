#pragma once

#include <vector>

#include "router/core/cluster_view.h"
#include "router/core/routing_policy.h"
#include "router/core/slot_set.h"

namespace penstock {

// Who may serve a request, after all that is not a matter of preference: what
// every policy ranks.
//
// Only ready workers with room and memory are candidates, suspect ones only
// when there is no other, and none that is vetoed or to be avoided. A worker
// that keeps the request's KV has a hit of that length and room; it may prefill
// whatever its role, draining or to be avoided, and it decodes when it drains
// if nobody else can.
struct Candidates {
  SlotSet decode, prefill;
  // Ready for the leg and large enough, whether or not they have room.
  bool decode_ready = false, decode_large_enough = false;
  bool prefill_large_enough = false;
  // Tokens of the prompt that a worker has, by slot: less than the prompt has,
  // since the last one is always computed.
  std::vector<int> cached;
  SlotSet keepers;  // some of them for this request

  static Candidates Of(const RequestFacts& request, const ClusterView& view);

  // Of the prefill candidates, those that can hand their KV to `decode`.
  SlotSet PartnersOf(WorkerSlot decode, const ClusterView& view) const;
};

}  // namespace penstock
