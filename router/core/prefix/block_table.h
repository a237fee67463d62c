#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/id.h"

namespace penstock {

// Where a block lies: in which run, and under which label there.
struct BlockPlace {
  uint32_t run = 0;    // never 0
  uint16_t label = 0;  // below kBlockLabels
  friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
};

inline constexpr uint16_t kBlockLabels = 4096;

// From a block's hash to its place, in 8 bytes for each place there is: the
// hashes themselves are where the places say. So callers tell the table what is
// there: `is(place)` whether the hash they ask for is, `hash_at(place)` which.
//
// Open addressing (Robin Hood) in segments of 1024 places; a full segment
// splits in two (extendible hashing), so that no call has more to move than one
// segment, and the table never shrinks. O(1). Single-threaded.
class BlockTable {
 public:
  BlockTable();

  template <typename Is>
  std::optional<BlockPlace> Find(BlockHash hash, Is is) const;

  // Precondition: the hash is not in the table. False: so many hashes share
  // their bits that they must have been made to; it is not inserted.
  template <typename HashAt>
  bool Insert(BlockHash hash, BlockPlace place, HashAt hash_at);

  // Precondition: the hash is in the table with this place.
  void Erase(BlockHash hash, BlockPlace place);
  void Move(BlockHash hash, BlockPlace from, BlockPlace to);

  size_t size() const { return size_; }
  size_t bytes() const {
    return segments_.size() * sizeof(Segment) +
           directory_.capacity() * sizeof(directory_[0]) +
           segments_.capacity() * sizeof(segments_[0]);
  }

 private:
  static constexpr uint32_t kPlaces = 1024;
  static constexpr uint32_t kFull = kPlaces * 7 / 8;
  // An entry is run << 32 | label << 20 | distance << 12 | tag; 0 is empty. The
  // distance is from the place where the hash wants to be.
  static constexpr int kTagBits = 12, kDistanceBits = 8;
  static constexpr uint64_t kDistanceOne = uint64_t{1} << kTagBits;
  static constexpr uint32_t kMaxDistance = (1 << kDistanceBits) - 1;
  static constexpr int kMaxDepth = 22;  // 4 million segments

  struct Segment {
    std::array<uint64_t, kPlaces> entries{};
    uint32_t size = 0;
    int depth = 0;  // leading bits that all its hashes share
  };

  // Hashes are random already, except those of tests and of the hostile.
  static uint64_t Mix(BlockHash hash) {
    const unsigned __int128 product =
        static_cast<unsigned __int128>(hash.value() ^ 0x9e3779b97f4a7c15u) *
        0xd6e8feb86659fd93u;
    return static_cast<uint64_t>(product >> 64) ^
           static_cast<uint64_t>(product);
  }
  static uint32_t Home(uint64_t mixed) { return mixed % kPlaces; }
  static uint64_t Tag(uint64_t mixed) {
    return mixed / kPlaces % (uint64_t{1} << kTagBits);
  }
  static uint32_t Distance(uint64_t entry) {
    return static_cast<uint32_t>(entry >> kTagBits) & kMaxDistance;
  }
  static uint64_t Entry(BlockPlace place, uint64_t tag) {
    return uint64_t{place.run} << 32 | uint64_t{place.label} << 20 | tag;
  }
  static BlockPlace PlaceOf(uint64_t entry) {
    return {static_cast<uint32_t>(entry >> 32),
            static_cast<uint16_t>(entry >> 20 & (kBlockLabels - 1))};
  }
  static bool SameTag(uint64_t a, uint64_t b) {
    return ((a ^ b) & (kDistanceOne - 1)) == 0;
  }

  const Segment& SegmentOf(uint64_t mixed) const {
    return *segments_[directory_[IndexOf(mixed)]];
  }
  Segment& SegmentOf(uint64_t mixed) {
    return *segments_[directory_[IndexOf(mixed)]];
  }
  size_t IndexOf(uint64_t mixed) const {
    return depth_ == 0 ? 0 : mixed >> (64 - depth_);
  }
  // False: no room near its home.
  static bool Put(Segment& segment, uint32_t home, uint64_t entry);
  static uint32_t PositionOf(const Segment& segment, uint64_t mixed,
                             BlockPlace place);
  // Of the segment of `mixed`, by one bit more of the hashes. False: there is
  // none.
  template <typename HashAt>
  bool Split(uint64_t mixed, HashAt hash_at);
  void DoubleDirectory();

  int depth_ = 0;
  std::vector<uint32_t> directory_;  // by the first depth_ bits of a hash
  std::vector<std::unique_ptr<Segment>> segments_;
  size_t size_ = 0;
};

template <typename Is>
std::optional<BlockPlace> BlockTable::Find(BlockHash hash, Is is) const {
  const uint64_t mixed = Mix(hash);
  const Segment& segment = SegmentOf(mixed);
  const uint64_t tag = Tag(mixed);
  uint32_t at = Home(mixed);
  for (uint32_t distance = 0; distance <= kMaxDistance; ++distance) {
    const uint64_t entry = segment.entries[at];
    // A hash that is this far from home would have taken this place.
    if (entry == 0 || Distance(entry) < distance) return std::nullopt;
    if (SameTag(entry, tag) && is(PlaceOf(entry))) return PlaceOf(entry);
    at = (at + 1) % kPlaces;
  }
  return std::nullopt;
}

template <typename HashAt>
bool BlockTable::Insert(BlockHash hash, BlockPlace place, HashAt hash_at) {
  const uint64_t mixed = Mix(hash);
  for (;;) {
    Segment& segment = SegmentOf(mixed);
    if (segment.size < kFull &&
        Put(segment, Home(mixed), Entry(place, Tag(mixed)))) {
      ++segment.size;
      ++size_;
      return true;
    }
    if (!Split(mixed, hash_at)) return false;
  }
}

template <typename HashAt>
bool BlockTable::Split(uint64_t mixed, HashAt hash_at) {
  const uint32_t id = directory_[IndexOf(mixed)];
  Segment& old = *segments_[id];
  if (old.depth == kMaxDepth) return false;
  if (old.depth == depth_) DoubleDirectory();
  const auto other_id = static_cast<uint32_t>(segments_.size());
  segments_.push_back(std::make_unique<Segment>());
  Segment& other = *segments_.back();
  const std::unique_ptr<Segment> before = std::make_unique<Segment>(old);
  old = {};
  old.depth = other.depth = before->depth + 1;
  const int bit = 64 - old.depth;
  for (uint64_t entry : before->entries) {
    if (entry == 0) continue;
    const uint64_t moved = Mix(hash_at(PlaceOf(entry)));
    Segment& to = (moved >> bit & 1) != 0 ? other : old;
    entry &= ~(uint64_t{kMaxDistance} << kTagBits);
    // Fits: half of them took no more room in a segment that is as large.
    Put(to, Home(moved), entry);
    ++to.size;
  }
  // The second half of the entries that name the old one.
  const size_t named = size_t{1} << (depth_ - before->depth);
  const size_t first = IndexOf(mixed) / named * named;
  for (size_t i = named / 2; i < named; ++i) directory_[first + i] = other_id;
  return true;
}

}  // namespace penstock
