#pragma once

#include "common/base/id.h"
#include "common/env/random.h"

namespace penstock {

// 64 bits from the operating system, never 0. Thread-safe.
uint64_t DrawEntropy();

// For this process's life.
inline Incarnation DrawIncarnation() { return Incarnation(DrawEntropy()); }

// Seeded from the operating system; the seeds of requests come from here.
// Single-threaded.
class EntropyRandom : public SeededRandom {
 public:
  EntropyRandom() : SeededRandom(DrawEntropy()) {}
};

}  // namespace penstock
