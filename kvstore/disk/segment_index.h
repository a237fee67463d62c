#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/id.h"
#include "kvstore/core/tier_policy.h"

namespace penstock {

// Where a record lies.
struct SegmentSlot {
  uint64_t segment = 0;
  uint32_t slot = 0;
  friend bool operator==(const SegmentSlot&, const SegmentSlot&) = default;
};

// Which page lies where in a store of segments that are only appended to, which
// pages should go, and which segments are to be cleaned: their last good pages
// written again to the active one, the files removed (as M. Rosenblum and J.
// Ousterhout, "The Design and Implementation of a Log-Structured File System",
// SOSP 1991; here a page may also be dropped, which bounds the copying). Knows
// no file. Single-threaded, its tier's.
class SegmentIndex {
 public:
  struct Options {
    uint64_t header_bytes = 0;
    uint64_t slot_bytes = 1;
    uint32_t slots_per_segment = 1;
    // Of all files together. Precondition: two segments at least.
    uint64_t max_bytes = 0;
    // More files than this are cleaned though there is room.
    size_t max_segments = 256;
  };
  explicit SegmentIndex(const Options& options) : options_(options) {}

  // A segment that was found, to be read only.
  void AddSealed(uint64_t number, uint32_t slots);

  // May another full segment be made?
  bool MayOpen() const;
  // It was made. Precondition: MayOpen, and no active segment.
  void Open(uint64_t number);
  bool active() const { return active_ != 0; }
  // Nothing more goes into the active segment; returns its number.
  uint64_t Seal();

  // The next free slot of the active segment, pending until Settle; nothing:
  // there is none.
  std::optional<SegmentSlot> TakeSlot();
  // Its write has ended, one way or another.
  void Settle(SegmentSlot slot);

  // Nothing more will be written to this segment.
  bool Done(uint64_t number) const;

  // A page lies at a slot now, and no longer where it was.
  void Put(BlockHash hash, BlockHash parent, const TierPolicy::Cost& cost,
           SegmentSlot slot);
  // The same page was copied. Precondition: it is held.
  void Move(BlockHash hash, SegmentSlot slot);
  std::optional<SegmentSlot> Find(BlockHash hash) const;
  void Use(BlockHash hash) { policy_.Use(hash); }
  // No-op for unknown pages.
  void Forget(BlockHash hash);

  // What to do so that MayOpen becomes true: these segments go, after these
  // pages of theirs were copied (at most half a segment of them). Evicts pages
  // as the policy says, as many as that takes. Segments with pending writes
  // stay; empty when nothing needs to go or can.
  struct Cleaning {
    std::vector<uint64_t> segments;
    std::vector<BlockHash> survivors;
  };
  Cleaning PlanCleaning();

  // The file goes, and with it what is still there.
  void Drop(uint64_t number);
  // The oldest segment that is not active; nothing: there is none.
  std::optional<uint64_t> Oldest() const;

  size_t pages() const { return places_.size(); }
  size_t segments() const { return segments_.size(); }
  uint64_t evicted() const { return evicted_; }
  // Of all files, the active one taken for full.
  uint64_t footprint() const;

 private:
  struct Segment {
    uint32_t used = 0;
    uint32_t pending = 0;
    std::map<uint32_t, BlockHash> live;
  };

  uint64_t SegmentBytes(uint32_t slots) const {
    return options_.header_bytes + slots * options_.slot_bytes;
  }
  uint64_t FullBytes() const {
    return SegmentBytes(options_.slots_per_segment);
  }
  // Of those that can go and are not chosen, the one with fewest pages.
  std::optional<uint64_t> Emptiest(const std::vector<uint64_t>& chosen) const;
  void Unplace(BlockHash hash);

  const Options options_;
  TierPolicy policy_;
  std::map<uint64_t, Segment> segments_;
  absl::flat_hash_map<BlockHash, SegmentSlot> places_;
  uint64_t active_ = 0;  // none
  uint64_t evicted_ = 0;
};

}  // namespace penstock
