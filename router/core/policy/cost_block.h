#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "router/core/slot_set.h"
#include "router/core/worker_columns.h"

namespace penstock {

// Workers are compared 64 at a time, in loops that become vector instructions:
// what each of 64 slots costs, infinity for those that may not be chosen.
class CostBlock {
 public:
  static constexpr size_t kSlots = kSlotsAtOnce;

  static_assert(kSlots == 64, "a word of a SlotSet");

  double& operator[](size_t i) { return costs_[i]; }
  double operator[](size_t i) const { return costs_[i]; }

  // Those whose bit is clear may not be chosen.
  void KeepOnly(uint64_t members) {
    if (~members == 0) return;
    for (size_t i = 0; i < kSlots; i += 2) {
      const Two tolled = TwoAt(i) + kTolls[members >> i & 3];
      std::memcpy(&costs_[i], &tolled, sizeof(tolled));
    }
  }

  double Least() const {
    std::array<Two, 4> least = {TwoAt(0), TwoAt(2), TwoAt(4), TwoAt(6)};
    for (size_t i = 8; i < kSlots; i += 8) {
      for (size_t j = 0; j < 4; ++j) {
        const Two two = TwoAt(i + 2 * j);
        least[j] = two < least[j] ? two : least[j];
      }
    }
    return std::min({least[0][0], least[0][1], least[1][0], least[1][1],
                     least[2][0], least[2][1], least[3][0], least[3][1]});
  }

  // A bit for each that costs so much.
  uint64_t At(double cost) const {
    uint64_t equal = 0;
    for (size_t i = 0; i < kSlots; ++i) {
      equal |= uint64_t{costs_[i] == cost} << i;
    }
    return equal;
  }

 private:
  // What every 64-bit machine has an instruction for.
  typedef double Two __attribute__((vector_size(2 * sizeof(double))));

  Two TwoAt(size_t i) const {
    Two two;
    std::memcpy(&two, &costs_[i], sizeof(two));
    return two;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // What is added to the costs of two, by their bits.
  static constexpr std::array<Two, 4> kTolls = {
      Two{kNever, kNever}, Two{0, kNever}, Two{kNever, 0}, Two{0, 0}};

  alignas(64) std::array<double, kSlots> costs_;
};

// A bit for each of the 64 numbers that is another one than `common`.
inline uint64_t Differing(const int* numbers, int common) {
  int any = 0;
  for (size_t i = 0; i < CostBlock::kSlots; ++i) any |= numbers[i] ^ common;
  if (any == 0) return 0;
  uint64_t differing = 0;
  for (size_t i = 0; i < CostBlock::kSlots; ++i) {
    differing |= uint64_t{numbers[i] != common} << i;
  }
  return differing;
}

// A member whose cost is least: of several one at random, by one draw.
// fill(word, members, block) sets what the slots from 64 * word on cost, to
// infinity where they are no members; none of them costs less than floor(word).
// Precondition: `slots` is not empty, and no cost is NaN.
template <typename Fill, typename Floor>
size_t LeastOf(const SlotSet& slots, Random& random, Fill fill, Floor floor) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<size_t, uint64_t>> ties;
  size_t count = 0;
  CostBlock block;
  for (size_t word = 0; word < slots.words(); ++word) {
    const uint64_t members = slots.Word(word);
    if (members == 0 || floor(word) > least) continue;
    fill(word, members, block);
    const double its = block.Least();
    if (its > least) continue;
    if (its < least) {
      ties.clear();
      count = 0;
    }
    least = its;
    const uint64_t equal = block.At(least) & members;
    ties.emplace_back(word, equal);
    count += std::popcount(equal);
  }
  size_t rank = random.Below(count);
  auto at = ties.begin();
  for (; rank >= static_cast<size_t>(std::popcount(at->second)); ++at) {
    rank -= std::popcount(at->second);
  }
  uint64_t left = at->second;
  for (; rank > 0; --rank) left &= left - 1;
  return at->first * CostBlock::kSlots + std::countr_zero(left);
}

template <typename Fill>
size_t LeastOf(const SlotSet& slots, Random& random, Fill fill) {
  return LeastOf(slots, random, fill, [](size_t) {
    return -std::numeric_limits<double>::infinity();
  });
}

}  // namespace penstock
