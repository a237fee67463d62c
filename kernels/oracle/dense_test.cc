#include "kernels/oracle/dense.h"

#include <cmath>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

std::vector<float> RandomFloats(uint64_t seed, size_t size) {
  SeededRandom random(seed);
  std::vector<float> values(size);
  for (float& value : values) {
    value = static_cast<float>(random.Uniform() * 2 - 1);
  }
  return values;
}

TEST(DenseTest, ProductMatchesDoubleAndItsRowsDoNotDependOnTheBatch) {
  for (int cols : {1, 15, 16, 33, 576}) {
    for (int rows : {1, 2, 3, 7}) {
      const Matrix w = {9, cols, RandomFloats(1, size_t{9} * cols)};
      const std::vector<float> x = RandomFloats(2, size_t{1} * rows * cols);
      std::vector<float> out(rows * 9, NAN);
      MatrixProduct(x.data(), rows, w, {0, 5}, out.data());
      MatrixProduct(x.data(), rows, w, {5, 9}, out.data());
      for (int m = 0; m < rows; ++m) {
        for (int n = 0; n < 9; ++n) {
          double exact = 0;
          for (int k = 0; k < cols; ++k) {
            exact += double{x[m * cols + k]} * w.values[n * cols + k];
          }
          EXPECT_NEAR(out[m * 9 + n], exact, 1e-5);
          EXPECT_EQ(out[m * 9 + n], Dot(x.data() + m * cols, w.row(n), cols));
        }
      }
    }
  }
}

TEST(DenseTest, SharesCoverAllOnce) {
  for (int count : {0, 1, 7, 100}) {
    int next = 0;
    for (int thread = 0; thread < 3; ++thread) {
      IndexRange share = Share(count, thread, 3);
      EXPECT_EQ(share.first, next);
      next = share.last;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace penstock
