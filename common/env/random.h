#pragma once

#include <array>
#include <cstdint>

namespace penstock {

// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC'11): a pure function of (key, counter), so that a sampled token depends on
// (seed, sample, position) and on nothing that happened before.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

// What a draw of a token needs randomness for; each has numbers of its own. 1
// is SeededRandom's.
enum class SampleStream : uint32_t { kToken = 0, kXtc = 2 };

// A double in [0, 1) for token `position` of sample `sample` under `seed`.
double SampleUniform(uint64_t seed, uint32_t sample, uint64_t position,
                     SampleStream stream = SampleStream::kToken);

// Randomness as a port: own generator and own distributions, so that a seed
// means the same everywhere. Single-threaded.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;

  // Uniform in [0, bound); bound > 0. Unbiased (rejection).
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1) with 53 random bits.
  double Uniform();
};

// Philox in counter mode over a 64-bit seed.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : seed_(seed) {}
  uint64_t Next() override;

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

}  // namespace penstock
