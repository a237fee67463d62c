#include "kernels/host/exp.h"

#include <cmath>

#include "gtest/gtest.h"

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

}  // namespace
}  // namespace penstock
