#include "router/core/policy/affinity_rankings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace penstock {
namespace {

// What prompts have in common in these first blocks goes together.
constexpr size_t kKeyBlocks = 16;
constexpr double kBound = 1.25;  // of the mean load

// The finaliser of SplitMix64.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t KeyOf(const RequestFacts& request) {
  if (request.session != 0) return request.session;
  if (request.chain.empty()) return 0;
  return request.chain[std::min(request.chain.size(), kKeyBlocks) - 1].value();
}

}  // namespace

WorkerSlot SessionStickyRanking::Pick(const LegChoice& choice,
                                      Random& random) const {
  if (choice.request.session != 0) {
    const auto server =
        choice.view.memory.ServerOf(choice.leg, choice.request.session);
    if (server.has_value() && choice.open.Contains(server->slot) &&
        choice.view.At(server->slot).info.key.incarnation ==
            server->incarnation) {
      return server->slot;
    }
  }
  return others_.Pick(choice, random);
}

WorkerSlot ConsistentHashRanking::Pick(const LegChoice& choice,
                                       Random& random) const {
  const uint64_t key = KeyOf(choice.request);
  // A prompt of less than a block has nothing to find again.
  if (key == 0) return choice.open.Nth(random.Below(choice.open.count()));
  const WorkerColumns& columns = choice.view.columns;
  double requests = 1;
  choice.open.ForEach([&](size_t slot) { requests += columns.requests[slot]; });
  const double most =
      std::ceil(kBound * requests / static_cast<double>(choice.open.count()));
  WorkerSlot chosen = 0;
  uint64_t highest = 0;
  bool any = false;
  choice.open.ForEach([&](size_t slot) {
    // The least loaded one is always below.
    if (columns.requests[slot] >= most) return;
    const uint64_t score = Mix(key ^ columns.name_hash[slot]);
    if (any && score <= highest) return;
    any = true;
    highest = score;
    chosen = slot;
  });
  return chosen;
}

}  // namespace penstock
