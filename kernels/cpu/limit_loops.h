#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kLimitScratchBytes = 4096;  // lies in any first level

// Loops that do one thing as fast as an instruction set can: what kernels are
// held against. Like them they belong to a KernelTable.
struct LimitLoops {
  // Reads data [bytes], a multiple of 4096, from four places at once. The sum
  // of it as floats, so that nothing can be left out.
  float (*read)(const uint8_t* data, size_t bytes);
  // Dot products of bytes, and multiply-adds of floats: `rounds` rounds over
  // scratch [kLimitScratchBytes], which is overwritten. The multiplications
  // and additions that were done.
  uint64_t (*dot_bytes)(int rounds, uint8_t* scratch);
  uint64_t (*multiply_floats)(int rounds, uint8_t* scratch);
};

// Dot products of BF16 in the same way, with vdpbf16ps; null where this machine
// lacks it.
uint64_t (*FindDotBfloat16())(int rounds, uint8_t* scratch);

}  // namespace penstock
