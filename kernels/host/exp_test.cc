#include "kernels/host/exp.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/host/log.h"

namespace penstock {
namespace {

TEST(ExpNonPositiveTest, MatchesLongDoubleWithinTheStatedError) {
  for (double x = 0; x > -690; x -= 0.0371) {
    long double exact = std::exp(static_cast<long double>(x));
    EXPECT_NEAR(static_cast<double>(ExpNonPositive(x) / exact), 1.0, 1e-15)
        << x;
  }
  EXPECT_EQ(ExpNonPositive(0), 1.0);
  EXPECT_EQ(ExpNonPositive(-0x1p-60), 1.0);
}

TEST(ExpNonPositiveTest, StandsStillFarBelow) {
  EXPECT_LE(ExpNonPositive(-700), kLeastExp);
  EXPECT_GT(ExpNonPositive(-700), 0);
  EXPECT_EQ(ExpNonPositive(-1e308), ExpNonPositive(-700));
}

TEST(LogOfTest, MatchesLongDouble) {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    const long double exact = std::log(static_cast<long double>(x));
    EXPECT_NEAR(static_cast<double>(LogOf(x) - exact), 0.0,
                2e-15 * std::max(1.0, std::abs(static_cast<double>(exact))))
        << x;
  }
  for (double x : {0.5, 0.7071067811865475, 0.7071067811865476, 0.999999999}) {
    EXPECT_NEAR(LogOf(x), std::log(x), 2e-16) << x;
  }
  EXPECT_EQ(LogOf(1), 0.0);
}

}  // namespace
}  // namespace penstock
