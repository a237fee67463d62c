#pragma once

#include <bit>
#include <cstdint>

namespace penstock {

// The natural logarithm of a positive, normal double, to about 1e-15. Ours for
// the same reason as ExpNonPositive: the same bits on every machine.
inline double LogOf(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  // x = m * 2^exponent with m in [sqrt(1/2), sqrt(2)).
  auto exponent = static_cast<int>(bits >> 52) - 1022;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) |
                                   0x3fe0000000000000u);  // in [1/2, 1)
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 atanh(s), by its series: |s| < 0.172.
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLn2 + 2 * s * sum;
}

}  // namespace penstock
