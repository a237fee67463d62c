#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/check.h"

namespace penstock {

// A set of small numbers below a size, as bits: workers by slot. Sets that meet
// in an operation have equal sizes. A value type.
class SlotSet {
 public:
  explicit SlotSet(size_t size = 0) { Resize(size); }

  // Numbers at or above `size` are no members any more.
  void Resize(size_t size);
  size_t size() const { return size_; }

  // Precondition: slot < size().
  void Set(size_t slot, bool member = true) {
    CHECK(slot < size_);
    const uint64_t bit = uint64_t{1} << (slot % 64);
    words_[slot / 64] = (words_[slot / 64] & ~bit) | (member ? bit : 0);
  }
  bool Contains(size_t slot) const {
    return slot < size_ && (words_[slot / 64] >> (slot % 64) & 1) != 0;
  }

  bool empty() const;
  size_t count() const;
  // The member that `rank` others are below. Precondition: rank < count().
  size_t Nth(size_t rank) const;
  // The least member above `slot`, or the least of all. Precondition: not
  // empty.
  size_t After(size_t slot) const;

  SlotSet& operator&=(const SlotSet& other);
  SlotSet& operator|=(const SlotSet& other);
  SlotSet& operator-=(const SlotSet& other);
  friend SlotSet operator&(SlotSet a, const SlotSet& b) { return a &= b; }
  friend SlotSet operator|(SlotSet a, const SlotSet& b) { return a |= b; }
  friend SlotSet operator-(SlotSet a, const SlotSet& b) { return a -= b; }
  friend bool operator==(const SlotSet&, const SlotSet&) = default;

  // 64 slots at a time: those from 64 * i on, as bits.
  size_t words() const { return words_.size(); }
  uint64_t Word(size_t i) const { return words_[i]; }

  // Calls `visit` with each member, in order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t left = words_[w]; left != 0; left &= left - 1) {
        visit(w * 64 + static_cast<size_t>(__builtin_ctzll(left)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace penstock
