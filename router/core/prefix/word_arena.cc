#include "router/core/prefix/word_arena.h"

#include <bit>
#include <utility>

#include "common/base/check.h"

namespace penstock {

// 1 to 8, then four sizes for each doubling.
int WordArena::SizeIndex(size_t words) {
  if (words <= 8) return static_cast<int>(words) - 1;
  const int shift = std::bit_width(words - 1) - 3;  // the step is 1 << shift
  return 4 * shift + static_cast<int>((words - 1) >> shift);
}

size_t WordArena::WordsOf(int size_index) {
  if (size_index < 8) return static_cast<size_t>(size_index) + 1;
  const int shift = (size_index - 4) / 4;
  return (static_cast<size_t>(size_index - 4 * shift) + 1) << shift;
}

size_t WordArena::Capacity(size_t words) { return WordsOf(SizeIndex(words)); }

WordArena::Handle WordArena::Allocate(size_t words) {
  CHECK(words > 0 && words <= kMaxWords) << words << " words";
  const int size_index = SizeIndex(words);
  const size_t size = WordsOf(size_index);
  uint32_t& head = with_room_[size_index];
  if (head == kNone) Link(NewSlab(), head);
  const uint32_t id = head;
  Slab& slab = slabs_[id];
  uint32_t offset;
  if (slab.free != kNoFree) {
    offset = slab.free;
    slab.free = static_cast<uint16_t>(slab.words[offset]);
  } else {
    offset = slab.fresh;
    slab.fresh = static_cast<uint16_t>(slab.fresh + size);
  }
  ++slab.live;
  if (slab.free == kNoFree && slab.fresh + size > kSlabWords) Unlink(id, head);
  used_words_ += size;
  return (id << kSlabBits) | offset;
}

void WordArena::Free(Handle handle, size_t words) {
  const int size_index = SizeIndex(words);
  const size_t size = WordsOf(size_index);
  const uint32_t id = handle >> kSlabBits;
  Slab& slab = slabs_[id];
  uint32_t& head = with_room_[size_index];
  if (slab.free == kNoFree && slab.fresh + size > kSlabWords) Link(id, head);
  const auto offset = static_cast<uint16_t>(handle & kSlabMask);
  slab.words[offset] = slab.free;
  slab.free = offset;
  used_words_ -= size;
  if (--slab.live > 0) return;
  Unlink(id, head);
  if (spare_ == nullptr) {
    spare_ = std::move(slab.words);
  } else {
    slab.words.reset();
    --slabs_with_memory_;
  }
  Link(id, without_memory_);
}

size_t WordArena::bytes() const {
  return slabs_with_memory_ * kSlabWords * sizeof(uint64_t) +
         slabs_.capacity() * sizeof(Slab);
}

uint32_t WordArena::NewSlab() {
  uint32_t id = without_memory_;
  if (id == kNone) {
    id = static_cast<uint32_t>(slabs_.size());
    CHECK(id < (uint32_t{1} << (32 - kSlabBits))) << "too many arrays";
    slabs_.emplace_back();
  } else {
    Unlink(id, without_memory_);
  }
  Slab& slab = slabs_[id];
  slab = {};
  if (spare_ == nullptr) {
    spare_ = std::make_unique_for_overwrite<uint64_t[]>(kSlabWords);
    ++slabs_with_memory_;
  }
  slab.words = std::move(spare_);
  return id;
}

void WordArena::Link(uint32_t slab, uint32_t& head) {
  slabs_[slab].next = head;
  slabs_[slab].previous = kNone;
  if (head != kNone) slabs_[head].previous = slab;
  head = slab;
}

void WordArena::Unlink(uint32_t slab, uint32_t& head) {
  const Slab& s = slabs_[slab];
  if (s.next != kNone) slabs_[s.next].previous = s.previous;
  if (s.previous != kNone) {
    slabs_[s.previous].next = s.next;
  } else {
    head = s.next;
  }
}

}  // namespace penstock
