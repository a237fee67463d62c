#include "router/core/prefix/block_table.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

BlockTable::BlockTable() : directory_(1) {
  segments_.push_back(std::make_unique<Segment>());
}

bool BlockTable::Put(Segment& segment, uint32_t home, uint64_t entry) {
  // First look whether everybody it pushes on stays near enough.
  uint64_t moving = entry;
  uint32_t at = home;
  for (;;) {
    uint64_t there = segment.entries[at];
    if (there == 0) break;
    if (Distance(there) < Distance(moving)) moving = there;
    if (Distance(moving) == kMaxDistance) return false;
    moving += kDistanceOne;
    at = (at + 1) % kPlaces;
  }
  for (at = home;; at = (at + 1) % kPlaces) {
    uint64_t& there = segment.entries[at];
    if (there == 0) {
      there = entry;
      return true;
    }
    if (Distance(there) < Distance(entry)) std::swap(there, entry);
    entry += kDistanceOne;
  }
}

uint32_t BlockTable::PositionOf(const Segment& segment, uint64_t mixed,
                                BlockPlace place) {
  uint32_t at = Home(mixed);
  for (uint32_t distance = 0; distance <= kMaxDistance; ++distance) {
    const uint64_t entry = segment.entries[at];
    if (entry != 0 && PlaceOf(entry) == place) return at;
    at = (at + 1) % kPlaces;
  }
  CHECK(false) << "run " << place.run << " is not in the table";
  return 0;
}

void BlockTable::Erase(BlockHash hash, BlockPlace place) {
  const uint64_t mixed = Mix(hash);
  Segment& segment = SegmentOf(mixed);
  uint32_t at = PositionOf(segment, mixed, place);
  // Those after it come nearer to where they want to be.
  for (;;) {
    const uint32_t next = (at + 1) % kPlaces;
    const uint64_t entry = segment.entries[next];
    if (entry == 0 || Distance(entry) == 0) break;
    segment.entries[at] = entry - kDistanceOne;
    at = next;
  }
  segment.entries[at] = 0;
  --segment.size;
  --size_;
}

void BlockTable::Move(BlockHash hash, BlockPlace from, BlockPlace to) {
  const uint64_t mixed = Mix(hash);
  Segment& segment = SegmentOf(mixed);
  uint64_t& entry = segment.entries[PositionOf(segment, mixed, from)];
  entry = Entry(to, entry & (kDistanceOne - 1)) | uint64_t{Distance(entry)}
                                                      << kTagBits;
}

void BlockTable::DoubleDirectory() {
  std::vector<uint32_t> doubled;
  doubled.reserve(2 * directory_.size());
  for (uint32_t id : directory_) doubled.insert(doubled.end(), 2, id);
  directory_ = std::move(doubled);
  ++depth_;
}

}  // namespace penstock
