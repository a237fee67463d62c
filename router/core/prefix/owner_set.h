#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "router/core/prefix/word_arena.h"

namespace penstock {

// A worker's place in the prefix index: a small number, the lowest that is
// free, so that arrays and bits can be addressed with it. Once a worker is gone
// its slot stays unused until nothing in the index names it any more.
using WorkerSlot = uint32_t;

inline constexpr WorkerSlot kMaxWorkerSlots = 65535;

inline bool BitOf(absl::Span<const uint64_t> bits, WorkerSlot slot) {
  return slot / 64 < bits.size() && (bits[slot / 64] >> (slot % 64) & 1) != 0;
}

// The owners of some blocks: up to four slots in place, else bits in an arena.
// Equal sets have equal forms. A value that must be released to the arena it
// was made with, which is given to each call that reads or changes the bits.
class OwnerSet {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool IsOnly(WorkerSlot slot) const { return size_ == 1 && few_[0] == slot; }

  bool Contains(const WordArena& arena, WorkerSlot slot) const;
  // False: it was there, or was not.
  bool Add(WordArena& arena, WorkerSlot slot);
  bool Remove(WordArena& arena, WorkerSlot slot);
  // Removes those whose bit is set.
  void RemoveAll(WordArena& arena, absl::Span<const uint64_t> bits);

  bool Equals(const WordArena& arena, const OwnerSet& other) const;
  OwnerSet Clone(WordArena& arena) const;
  // Leaves it empty.
  void Release(WordArena& arena);

  // visit(slot), in order.
  template <typename Visit>
  void ForEach(const WordArena& arena, Visit visit) const;

  static constexpr size_t kFew = 4;

 private:
  friend class OwnersView;
  bool is_few() const { return width_ == 0; }
  // Bits of so many words, holding what it holds; more words than now.
  void Widen(WordArena& arena, size_t words);
  void Shrink(WordArena& arena);

  uint16_t size_ = 0;
  uint16_t width_ = 0;  // in words; 0: `few_` holds them, in order
  std::array<uint16_t, kFew> few_{};
  WordArena::Handle bits_ = 0;
};

// An owner set to read, as 64 slots at a time. Valid until the set changes.
class OwnersView {
 public:
  OwnersView(const WordArena& arena, const OwnerSet& set)
      : set_(&set), bits_(set.is_few() ? nullptr : arena.At(set.bits_)) {}

  // Word(i) is 0 from here on.
  size_t words() const {
    if (bits_ != nullptr) return set_->width_;
    return set_->empty() ? 0 : set_->few_[set_->size_ - 1] / 64 + 1;
  }

  // Slots 64 * i to 64 * i + 63.
  uint64_t Word(size_t i) const {
    if (bits_ != nullptr) return i < set_->width_ ? bits_[i] : 0;
    uint64_t word = 0;
    for (size_t j = 0; j < set_->size_; ++j) {
      const uint64_t bit = uint64_t{1} << (set_->few_[j] % 64);
      word |= set_->few_[j] / 64 == i ? bit : 0;
    }
    return word;
  }

  bool Contains(WorkerSlot slot) const {
    return (Word(slot / 64) >> (slot % 64) & 1) != 0;
  }

 private:
  const OwnerSet* set_;
  const uint64_t* bits_;
};

template <typename Visit>
void OwnerSet::ForEach(const WordArena& arena, Visit visit) const {
  if (is_few()) {
    for (size_t i = 0; i < size_; ++i) visit(WorkerSlot{few_[i]});
    return;
  }
  const uint64_t* bits = arena.At(bits_);
  for (WorkerSlot i = 0; i < width_; ++i) {
    for (uint64_t word = bits[i]; word != 0; word &= word - 1) {
      visit(64 * i + static_cast<WorkerSlot>(__builtin_ctzll(word)));
    }
  }
}

}  // namespace penstock
