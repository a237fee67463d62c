#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock {

// Memory for arrays of 64-bit words that come and go in great numbers. Arrays
// are rounded up to one of a few sizes, at most a quarter more than asked for;
// each size has slabs of its own, and a slab that holds nothing is given back.
// Single-threaded. Every call is O(1).
class WordArena {
 public:
  // Names an array; 0 is none.
  using Handle = uint32_t;
  static constexpr size_t kMaxWords = 1024;

  // The words that an array of `words` really has. 1 to kMaxWords.
  static size_t Capacity(size_t words);

  // Not initialised.
  Handle Allocate(size_t words);
  // `words`: what it was allocated with, or its capacity.
  void Free(Handle handle, size_t words);

  // Valid until the array is freed.
  uint64_t* At(Handle handle) {
    return slabs_[handle >> kSlabBits].words.get() + (handle & kSlabMask);
  }
  const uint64_t* At(Handle handle) const {
    return slabs_[handle >> kSlabBits].words.get() + (handle & kSlabMask);
  }

  // Of arrays in use, and of all slabs.
  size_t used_bytes() const { return used_words_ * sizeof(uint64_t); }
  size_t bytes() const;

 private:
  static constexpr int kSlabBits = 12;
  static constexpr size_t kSlabWords = size_t{1} << kSlabBits;
  static constexpr uint32_t kSlabMask = kSlabWords - 1;
  static constexpr int kSizes = 36;
  static constexpr uint32_t kNone = 0;
  static constexpr uint16_t kNoFree = kSlabWords;

  struct Slab {
    std::unique_ptr<uint64_t[]> words;
    uint16_t live = 0;          // arrays in use
    uint16_t fresh = 0;         // words from here on were never given out
    uint16_t free = kNoFree;    // a freed array, whose first word is the next
    uint32_t next = kNone;      // among those of its size with room,
    uint32_t previous = kNone;  // or among those without memory
  };

  // Which size holds so many words.
  static int SizeIndex(size_t words);
  static size_t WordsOf(int size_index);
  uint32_t NewSlab();
  void Link(uint32_t slab, uint32_t& head);
  void Unlink(uint32_t slab, uint32_t& head);

  std::vector<Slab> slabs_ = std::vector<Slab>(1);  // 0 is none
  std::array<uint32_t, kSizes> with_room_{};
  uint32_t without_memory_ = kNone;
  std::unique_ptr<uint64_t[]> spare_;
  size_t slabs_with_memory_ = 0;
  size_t used_words_ = 0;
};

}  // namespace penstock
