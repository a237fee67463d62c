#include "router/core/prefix/owner_set.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace penstock {

bool OwnerSet::Contains(const WordArena& arena, WorkerSlot slot) const {
  return OwnersView(arena, *this).Contains(slot);
}

bool OwnerSet::Add(WordArena& arena, WorkerSlot slot) {
  CHECK(slot < kMaxWorkerSlots) << "worker slot " << slot;
  if (is_few()) {
    auto end = few_.begin() + size_;
    auto at = std::lower_bound(few_.begin(), end, slot);
    if (at != end && *at == slot) return false;
    if (size_ < kFew) {
      std::move_backward(at, end, end + 1);
      *at = static_cast<uint16_t>(slot);
      ++size_;
      return true;
    }
  }
  const size_t last = std::max<size_t>(slot, is_few() ? few_[kFew - 1] : 0);
  if (last / 64 >= width_) Widen(arena, last / 64 + 1);
  uint64_t& word = arena.At(bits_)[slot / 64];
  const uint64_t bit = uint64_t{1} << (slot % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++size_;
  return true;
}

bool OwnerSet::Remove(WordArena& arena, WorkerSlot slot) {
  if (is_few()) {
    auto end = few_.begin() + size_;
    auto at = std::lower_bound(few_.begin(), end, slot);
    if (at == end || *at != slot) return false;
    std::move(at + 1, end, at);
    few_[--size_] = 0;
    return true;
  }
  if (slot / 64 >= width_) return false;
  uint64_t& word = arena.At(bits_)[slot / 64];
  const uint64_t bit = uint64_t{1} << (slot % 64);
  if ((word & bit) == 0) return false;
  word &= ~bit;
  --size_;
  Shrink(arena);
  return true;
}

void OwnerSet::RemoveAll(WordArena& arena, absl::Span<const uint64_t> bits) {
  if (is_few()) {
    auto end = few_.begin() + size_;
    auto kept = std::remove_if(
        few_.begin(), end, [&](uint16_t slot) { return BitOf(bits, slot); });
    std::fill(kept, end, uint16_t{0});
    size_ = static_cast<uint16_t>(kept - few_.begin());
    return;
  }
  uint64_t* own = arena.At(bits_);
  size_t size = 0;
  for (size_t i = 0; i < width_; ++i) {
    if (i < bits.size()) own[i] &= ~bits[i];
    size += static_cast<size_t>(std::popcount(own[i]));
  }
  size_ = static_cast<uint16_t>(size);
  Shrink(arena);
}

bool OwnerSet::Equals(const WordArena& arena, const OwnerSet& other) const {
  if (size_ != other.size_ || is_few() != other.is_few()) return false;
  if (is_few()) return few_ == other.few_;
  const OwnersView a(arena, *this), b(arena, other);
  for (size_t i = 0; i < std::max(width_, other.width_); ++i) {
    if (a.Word(i) != b.Word(i)) return false;
  }
  return true;
}

OwnerSet OwnerSet::Clone(WordArena& arena) const {
  OwnerSet clone = *this;
  if (!is_few()) {
    clone.bits_ = arena.Allocate(width_);
    std::copy_n(arena.At(bits_), width_, arena.At(clone.bits_));
  }
  return clone;
}

void OwnerSet::Release(WordArena& arena) {
  if (!is_few()) arena.Free(bits_, width_);
  *this = {};
}

void OwnerSet::Widen(WordArena& arena, size_t words) {
  const WordArena::Handle bits = arena.Allocate(words);
  uint64_t* to = arena.At(bits);
  std::fill_n(to, words, 0);
  ForEach(arena, [&](WorkerSlot slot) {
    to[slot / 64] |= uint64_t{1} << (slot % 64);
  });
  if (!is_few()) arena.Free(bits_, width_);
  few_ = {};
  bits_ = bits;
  width_ = static_cast<uint16_t>(words);
}

void OwnerSet::Shrink(WordArena& arena) {
  if (size_ > kFew) return;
  std::array<uint16_t, kFew> few{};
  size_t count = 0;
  ForEach(arena,
          [&](WorkerSlot slot) { few[count++] = static_cast<uint16_t>(slot); });
  arena.Free(bits_, width_);
  few_ = few;
  bits_ = 0;
  width_ = 0;
}

}  // namespace penstock
