#include "router/core/prefix/prefix_match.h"

#include <algorithm>

namespace penstock {

int PrefixMatch::BlocksOf(WorkerSlot slot) const {
  auto it = std::lower_bound(
      holdings_.begin(), holdings_.end(), slot,
      [](const Holding& h, WorkerSlot slot) { return h.slot < slot; });
  return it != holdings_.end() && it->slot == slot ? it->blocks : 0;
}

int PrefixMatch::deepest() const {
  int deepest = 0;
  ForEach([&](WorkerSlot, int blocks) { deepest = std::max(deepest, blocks); });
  return deepest;
}

void PrefixMatch::CopyTo(absl::Span<int> blocks) const {
  std::fill(blocks.begin(), blocks.end(), 0);
  ForEach([&](WorkerSlot slot, int held) {
    if (slot < blocks.size()) blocks[slot] = held;
  });
}

std::vector<PrefixMatch::Holding> PrefixMatch::Holdings() const {
  std::vector<Holding> holdings;
  ForEach([&](WorkerSlot slot, int blocks) {
    holdings.push_back({slot, blocks});
  });
  return holdings;
}

}  // namespace penstock
