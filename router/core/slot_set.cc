#include "router/core/slot_set.h"

#include <algorithm>

namespace penstock {

void SlotSet::Resize(size_t size) {
  words_.resize((size + 63) / 64);
  if (size < size_ && size % 64 != 0) {
    words_.back() &= (uint64_t{1} << (size % 64)) - 1;
  }
  size_ = size;
}

bool SlotSet::empty() const {
  return std::all_of(words_.begin(), words_.end(),
                     [](uint64_t word) { return word == 0; });
}

size_t SlotSet::count() const {
  size_t count = 0;
  for (uint64_t word : words_) count += __builtin_popcountll(word);
  return count;
}

size_t SlotSet::Nth(size_t rank) const {
  for (size_t w = 0; w < words_.size(); ++w) {
    uint64_t left = words_[w];
    const size_t members = __builtin_popcountll(left);
    if (rank >= members) {
      rank -= members;
      continue;
    }
    for (; rank > 0; --rank) left &= left - 1;
    return w * 64 + static_cast<size_t>(__builtin_ctzll(left));
  }
  CHECK(false) << "there are fewer members";
  return 0;
}

size_t SlotSet::After(size_t slot) const {
  const size_t start = slot + 1;
  for (size_t w = start / 64; w < words_.size(); ++w) {
    uint64_t word = words_[w];
    if (w == start / 64) word &= ~uint64_t{0} << (start % 64);
    if (word != 0) return w * 64 + static_cast<size_t>(__builtin_ctzll(word));
  }
  return Nth(0);
}

SlotSet& SlotSet::operator&=(const SlotSet& other) {
  CHECK(size_ == other.size_);
  for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  return *this;
}

SlotSet& SlotSet::operator|=(const SlotSet& other) {
  CHECK(size_ == other.size_);
  for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  return *this;
}

SlotSet& SlotSet::operator-=(const SlotSet& other) {
  CHECK(size_ == other.size_);
  for (size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
  return *this;
}

}  // namespace penstock
