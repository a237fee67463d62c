#include "router/core/placement_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "router/core/stable_hash.h"

namespace penstock {

uint64_t SessionNumber(absl::string_view tenant, absl::string_view session) {
  if (session.empty()) return 0;
  return StableHash(absl::StrCat(tenant, absl::string_view("\0", 1), session)) |
         1;
}

void PlacementMemory::Note(LegKind leg, uint64_t session,
                           const SlotOwner& worker) {
  last_[Index(leg)] = worker.slot;
  if (session == 0) return;
  auto it = recent_.find(session);
  if (it == recent_.end()) {
    Servers servers;
    if (auto old = older_.find(session); old != older_.end()) {
      servers = old->second;
    }
    if (recent_.size() >= sessions_) {
      older_ = std::move(recent_);
      recent_.clear();
    }
    it = recent_.emplace(session, servers).first;
  }
  it->second[Index(leg)] = worker;
}

std::optional<SlotOwner> PlacementMemory::ServerOf(LegKind leg,
                                                   uint64_t session) const {
  for (const auto* generation : {&recent_, &older_}) {
    auto it = generation->find(session);
    if (it != generation->end()) return it->second[Index(leg)];
  }
  return std::nullopt;
}

}  // namespace penstock
