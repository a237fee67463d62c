#pragma once

#include <bit>
#include <cstdint>

namespace penstock {

// What ExpNonPositive returns at least; far too little to count in any sum.
inline constexpr double kLeastExp = 1e-300;

// exp(max(x, -691)) for x <= 0, to about 1e-15. Ours, because C libraries
// choose by CPU between versions that differ in the last bit. No branches, so
// that the loops around it are turned into vectors.
inline double ExpNonPositive(double x) {
  constexpr double kLeastExponent = -691;
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42fefa38p-1;
  constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  // Adding and subtracting this rounds to an integer.
  constexpr double kRound = 0x1.8p52;
  double clamped = x < kLeastExponent ? kLeastExponent : x;
  double shifted = clamped * kLog2E + kRound;
  double n = shifted - kRound;
  double r = (clamped - n * kLn2High) - n * kLn2Low;
  // Taylor's series in Horner's form.
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // The low bits of `shifted` hold n; move it to the exponent of p.
  uint64_t scale = std::bit_cast<uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(p) + scale);
}

}  // namespace penstock
