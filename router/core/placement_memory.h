#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/peer/leg.h"
#include "router/core/prefix/owner_set.h"

namespace penstock {

// A worker's slot, and whose it was: slots are used again.
struct SlotOwner {
  WorkerSlot slot = 0;
  Incarnation incarnation;
};

// What stands for a session of a tenant; 0 when it has no name.
uint64_t SessionNumber(absl::string_view tenant, absl::string_view session);

// What policies may know of the placements before: kept by the registry as
// requests start, so that a policy itself needs no state. Bounded.
class PlacementMemory {
 public:
  // Sessions of which at least so many are remembered; as many again may be.
  explicit PlacementMemory(size_t sessions = 1 << 16) : sessions_(sessions) {}

  // A leg of a request of `session` (0: of none) was placed.
  void Note(LegKind leg, uint64_t session, const SlotOwner& worker);

  // Of the last leg of its kind; before the first, above every slot.
  WorkerSlot last(LegKind leg) const { return last_[Index(leg)]; }
  // Who served the session's last leg of the kind.
  std::optional<SlotOwner> ServerOf(LegKind leg, uint64_t session) const;

 private:
  using Servers = std::array<std::optional<SlotOwner>, 2>;  // by leg

  static size_t Index(LegKind leg) { return leg == LegKind::kDecode ? 1 : 0; }

  size_t sessions_;
  std::array<WorkerSlot, 2> last_ = {~WorkerSlot{0}, ~WorkerSlot{0}};
  // Two generations: when the recent one is full, the older is forgotten.
  absl::flat_hash_map<uint64_t, Servers> recent_, older_;
};

}  // namespace penstock
