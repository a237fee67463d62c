#include "common/env/random.h"

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

uint64_t Join(uint32_t low, uint32_t high) {
  return uint64_t{high} << 32 | low;
}

double ToUnit(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t p0 = uint64_t{kMultiplier0} * counter[0];
    uint64_t p1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double SampleUniform(uint64_t seed, uint32_t sample, uint64_t position,
                     SampleStream stream) {
  auto out = Philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
       sample, static_cast<uint32_t>(stream)},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return ToUnit(Join(out[0], out[1]));
}

uint64_t Random::Below(uint64_t bound) {
  CHECK(bound > 0);
  uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  uint64_t value = Next();
  while (value >= limit) value = Next();
  return value % bound;
}

double Random::Uniform() { return ToUnit(Next()); }

uint64_t SeededRandom::Next() {
  uint64_t n = counter_++;
  auto out = Philox4x32(
      {static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 1},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  return Join(out[0], out[1]);
}

}  // namespace penstock
