#include "kvstore/client/store_answers.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr size_t kMostHeld = 1 << 18;
constexpr size_t kMostAnswers = 4096;

}  // namespace

StoreAnswers::Belief StoreAnswers::Look(uint64_t id,
                                        absl::Span<const BlockHash> chain,
                                        Instant now) {
  Belief belief;
  if (chain.empty()) return belief;
  for (BlockHash hash : chain) {
    if (!Holds(hash, now)) break;
    ++belief.blocks;
  }
  if (belief.blocks == static_cast<int>(chain.size())) return belief;
  // A store that answers nothing is not asked more and more.
  if (asked_.size() >= kMostAnswers) return belief;
  if (answers_.size() >= kMostAnswers) answers_.clear();
  Answer& answer = answers_[{chain.front(), chain.back()}];
  belief.asking = answer.waiting || now >= answer.until;
  if (!belief.asking) {
    belief.blocks = std::max(belief.blocks, answer.blocks);
  } else if (!answer.waiting) {
    belief.ask = answer.waiting = true;
    asked_[id] = {chain.begin(), chain.end()};
  }
  return belief;
}

void StoreAnswers::Found(uint64_t id, int blocks, Instant now) {
  auto it = asked_.find(id);
  if (it == asked_.end()) return;
  const std::vector<BlockHash> chain = std::move(it->second);
  asked_.erase(it);
  const int held = std::clamp<int>(blocks, 0, chain.size());
  for (int i = 0; i < held; ++i) SetHeld(chain[i], now);
  answers_[{chain.front(), chain.back()}] = {held, now + freshness_, false};
}

bool StoreAnswers::Holds(BlockHash hash, Instant now) const {
  auto it = held_.find(hash);
  return it != held_.end() && now < it->second;
}

void StoreAnswers::SetHeld(BlockHash hash, Instant now) {
  if (held_.size() >= kMostHeld) held_.clear();
  held_[hash] = now + freshness_;
}

void StoreAnswers::Doubt(BlockHash hash) {
  held_.erase(hash);
  answers_.clear();
}

void StoreAnswers::Clear() {
  held_.clear();
  answers_.clear();
  asked_.clear();
}

}  // namespace penstock
