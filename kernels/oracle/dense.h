#pragma once

#include <vector>

#include "absl/types/span.h"

namespace penstock {

// A dense matrix of floats, row-major [rows, cols].
struct Matrix {
  int rows = 0;
  int cols = 0;
  std::vector<float> values;

  const float* row(int r) const {
    return values.data() + static_cast<size_t>(r) * cols;
  }
};

// A run of indices [first, last).
struct IndexRange {
  int first = 0;
  int last = 0;
};

// The part of [0, count) that thread `thread` of `threads` takes.
IndexRange Share(int count, int thread, int threads);

// Sum of a[i] * b[i] for i in [0, n): 16 lanes, added in pairs, then what is
// left over in order. Every product of this directory is summed so, whatever
// surrounds it: that is what makes a row's result independent of its batch.
float Dot(const float* a, const float* b, int n);

// out[m, n] = Dot(x row m, w row n) for all m in [0, rows) and n in `outputs`.
//   x    [rows, w.cols]
//   out  [rows, w.rows]
void MatrixProduct(const float* x, int rows, const Matrix& w,
                   IndexRange outputs, float* out);

// out[i] += scale * x[i] for i in [0, n).
void AddScaled(float scale, const float* x, int n, float* out);

}  // namespace penstock
