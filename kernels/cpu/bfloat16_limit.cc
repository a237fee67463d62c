#include "kernels/cpu/limit_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {

#if defined(__x86_64__)
namespace {

// Sums of a tile: as many as are under way at once, and some more.
constexpr int kSums = 16;
constexpr int kSteps = 16;  // of a round

__attribute__((target("avx512f,avx512bf16"))) uint64_t DotBfloat16(
    int rounds, uint8_t* scratch) {
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const auto x = (__m512bh)_mm512_loadu_si512(scratch);
  for (int step = 0; step < rounds * kSteps; ++step) {
    const auto w =
        (__m512bh)_mm512_loadu_si512(scratch + step % kSteps * sizeof(x));
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], w, x);
    }
  }
  for (int i = 0; i < kSums; ++i) {
    _mm512_storeu_ps(scratch + i * sizeof(sums[i]), sums[i]);
  }
  return uint64_t{2} * 32 * kSums * kSteps * rounds;
}

}  // namespace
#endif

uint64_t (*FindDotBfloat16())(int rounds, uint8_t* scratch) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return &DotBfloat16;
#endif
  return nullptr;
}

}  // namespace penstock
