#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "common/env/random.h"

namespace penstock {

// Choices that all mutators make.

inline bool OneIn(Random& random, uint64_t n) { return random.Below(n) == 0; }

// Precondition: there is an item.
template <typename Container>
auto& Pick(Random& random, Container& items) {
  return items[random.Below(std::size(items))];
}

// Numbers at which counts, lengths and offsets tend to go wrong: around zero
// and the powers of two, or anything.
uint64_t EdgeNumber(Random& random);

// One random edit of bytes that knows no format: cut, flip, splice, insert,
// erase, or a number set to an edge.
void EditBytes(Random& random, std::vector<uint8_t>& bytes);

}  // namespace penstock
