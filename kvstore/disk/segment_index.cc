#include "kvstore/disk/segment_index.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace penstock {

void SegmentIndex::AddSealed(uint64_t number, uint32_t slots) {
  CHECK(number != 0 && !segments_.contains(number));
  segments_[number].used = slots;
}

uint64_t SegmentIndex::footprint() const {
  uint64_t bytes = 0;
  for (const auto& [number, segment] : segments_) {
    bytes += number == active_ ? FullBytes() : SegmentBytes(segment.used);
  }
  return bytes;
}

bool SegmentIndex::MayOpen() const {
  return footprint() + FullBytes() <= options_.max_bytes &&
         segments_.size() < options_.max_segments;
}

void SegmentIndex::Open(uint64_t number) {
  CHECK(active_ == 0 && number != 0 && !segments_.contains(number));
  segments_[number] = Segment();
  active_ = number;
}

uint64_t SegmentIndex::Seal() {
  CHECK(active_ != 0);
  return std::exchange(active_, 0);
}

std::optional<SegmentSlot> SegmentIndex::TakeSlot() {
  if (active_ == 0) return std::nullopt;
  Segment& segment = segments_[active_];
  if (segment.used == options_.slots_per_segment) return std::nullopt;
  ++segment.pending;
  return SegmentSlot{active_, segment.used++};
}

void SegmentIndex::Settle(SegmentSlot slot) {
  auto it = segments_.find(slot.segment);
  CHECK(it != segments_.end() && it->second.pending > 0);
  --it->second.pending;
}

bool SegmentIndex::Done(uint64_t number) const {
  auto it = segments_.find(number);
  return number != active_ && it != segments_.end() && it->second.pending == 0;
}

void SegmentIndex::Unplace(BlockHash hash) {
  auto it = places_.find(hash);
  if (it == places_.end()) return;
  segments_[it->second.segment].live.erase(it->second.slot);
  places_.erase(it);
}

void SegmentIndex::Put(BlockHash hash, BlockHash parent,
                       const TierPolicy::Cost& cost, SegmentSlot slot) {
  Unplace(hash);
  places_[hash] = slot;
  segments_[slot.segment].live[slot.slot] = hash;
  policy_.Add(hash, parent, cost);
}

void SegmentIndex::Move(BlockHash hash, SegmentSlot slot) {
  CHECK(places_.contains(hash));
  Unplace(hash);
  places_[hash] = slot;
  segments_[slot.segment].live[slot.slot] = hash;
}

std::optional<SegmentSlot> SegmentIndex::Find(BlockHash hash) const {
  auto it = places_.find(hash);
  if (it == places_.end()) return std::nullopt;
  return it->second;
}

void SegmentIndex::Forget(BlockHash hash) {
  Unplace(hash);
  policy_.Remove(hash);
}

std::optional<uint64_t> SegmentIndex::Emptiest(
    const std::vector<uint64_t>& chosen) const {
  std::optional<uint64_t> best;
  for (const auto& [number, segment] : segments_) {
    if (number == active_ || segment.pending > 0 ||
        std::find(chosen.begin(), chosen.end(), number) != chosen.end()) {
      continue;
    }
    if (!best.has_value() ||
        segment.live.size() < segments_.at(*best).live.size()) {
      best = number;
    }
  }
  return best;
}

SegmentIndex::Cleaning SegmentIndex::PlanCleaning() {
  Cleaning plan;
  size_t survivors = 0;
  uint64_t bytes = footprint();
  size_t left = segments_.size();
  while (bytes + FullBytes() > options_.max_bytes ||
         left >= options_.max_segments) {
    const std::optional<uint64_t> next = Emptiest(plan.segments);
    if (!next.has_value()) break;
    const Segment& segment = segments_[*next];
    if (survivors + segment.live.size() > options_.slots_per_segment / 2) {
      // Less will be left of it, or of another.
      if (std::optional<BlockHash> victim = policy_.Evict()) {
        Unplace(*victim);
        ++evicted_;
        survivors = 0;
        for (uint64_t number : plan.segments) {
          survivors += segments_[number].live.size();
        }
        continue;
      }
      // Pages that name each other as parents: none is the last.
      while (!segment.live.empty()) Forget(segment.live.begin()->second);
    }
    survivors += segment.live.size();
    bytes -= SegmentBytes(segment.used);
    --left;
    plan.segments.push_back(*next);
  }
  for (uint64_t number : plan.segments) {
    for (const auto& [slot, hash] : segments_[number].live) {
      plan.survivors.push_back(hash);
    }
  }
  return plan;
}

void SegmentIndex::Drop(uint64_t number) {
  auto it = segments_.find(number);
  CHECK(it != segments_.end() && number != active_ && it->second.pending == 0);
  while (!it->second.live.empty()) Forget(it->second.live.begin()->second);
  segments_.erase(it);
}

std::optional<uint64_t> SegmentIndex::Oldest() const {
  for (const auto& [number, segment] : segments_) {
    if (number != active_) return number;
  }
  return std::nullopt;
}

}  // namespace penstock
