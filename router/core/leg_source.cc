#include "router/core/leg_source.h"

#include "common/model/kv_layout.h"

namespace penstock {
namespace {

// Not worth asking anybody for fewer blocks.
constexpr int kLeastBlocks = 4;

}  // namespace

LegSource FindSource(const ClusterView& view, absl::Span<const BlockHash> chain,
                     const LegPlacement& placement) {
  LegSource source;
  const WorkerView* puller = view.Find(placement.worker);
  if (view.prefixes == nullptr || puller == nullptr) return source;
  const WorkerColumns& columns = view.columns;
  const int own = placement.cached_tokens / kBlockTokens;
  view.prefixes->Match(chain).ForEach([&](WorkerSlot slot, int blocks) {
    const bool there =
        (columns.ready.Contains(slot) || columns.draining.Contains(slot)) &&
        columns.on_time.Contains(slot);
    if (blocks < own + kLeastBlocks || blocks <= source.blocks || !there ||
        slot == puller->slot ||
        !view.CanHandOff(columns.pairing[slot],
                         columns.pairing[puller->slot])) {
      return;
    }
    source = {&view.At(slot), blocks};
  });
  return source;
}

}  // namespace penstock
