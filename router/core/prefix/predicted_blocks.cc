#include "router/core/prefix/predicted_blocks.h"

#include <utility>

namespace penstock {

void PredictedBlocks::Add(WorkerSlot slot, absl::Span<const BlockHash> chain,
                          Instant now) {
  Expire(now);
  const size_t most = options_.max_blocks / 2;
  if (chain.size() > most) chain = chain.first(most);
  if (generations_[0].blocks() + chain.size() > most) {
    Turn();
    turned_ = now;
  }
  generations_[0].Store(slot, BlockHash(), chain);
}

void PredictedBlocks::Expire(Instant now) {
  if (now < turned_ + options_.lifetime) return;
  Turn();
  if (now < turned_ + 2 * options_.lifetime) {
    turned_ = turned_ + options_.lifetime;
    return;
  }
  Turn();
  turned_ = now;
}

void PredictedBlocks::Turn() {
  if (blocks() == 0) return;
  generations_[1] = std::exchange(generations_[0], RunTree());
}

void PredictedBlocks::Remove(WorkerSlot slot, BlockHash hash) {
  for (RunTree& tree : generations_) {
    if (tree.blocks() > 0) tree.Remove(slot, hash);
  }
}

void PredictedBlocks::Withdraw(WorkerSlot slot,
                               absl::Span<const BlockHash> chain) {
  if (blocks() == 0) return;
  // From the end, where runs grow shorter without being split.
  for (size_t i = chain.size(); i > 0; --i) Remove(slot, chain[i - 1]);
}

void PredictedBlocks::Clear(WorkerSlot slot) {
  for (RunTree& tree : generations_) tree.Clear(slot);
}

void PredictedBlocks::Match(absl::Span<const BlockHash> chain,
                            PrefixMatch& match) const {
  for (const RunTree& tree : generations_) {
    if (tree.blocks() == 0) continue;
    tree.Match(chain, match.levels());
    match.EndTree();
  }
}

void PredictedBlocks::Kill(WorkerSlot slot) {
  for (RunTree& tree : generations_) tree.Kill(slot);
}

void PredictedBlocks::StartSweep() {
  for (RunTree& tree : generations_) tree.StartSweep();
}

size_t PredictedBlocks::Sweep(size_t runs) {
  size_t visited = generations_[0].Sweep(runs);
  visited += generations_[1].Sweep(runs - visited);
  return visited;
}

void PredictedBlocks::Revive(WorkerSlot slot) {
  for (RunTree& tree : generations_) tree.Revive(slot);
}

size_t PredictedBlocks::blocks() const {
  return generations_[0].blocks() + generations_[1].blocks();
}

size_t PredictedBlocks::bytes() const {
  return generations_[0].bytes() + generations_[1].bytes();
}

}  // namespace penstock
