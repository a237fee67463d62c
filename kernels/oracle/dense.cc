#include "kernels/oracle/dense.h"

#include <cstdint>
#include <cstring>

#include "kernels/host/vector_clones.h"

namespace penstock {
namespace {

constexpr int kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// Rows by outputs of one tile of a product.
constexpr int kTileRows = 2;
constexpr int kTileOutputs = 4;

// Adds the lanes in pairs, then the products of the last n % 16 elements.
[[gnu::always_inline]] inline float Finish(const Lanes& sums, const float* a,
                                           const float* b, int n) {
  float lane[kLanes];
  std::memcpy(lane, &sums, sizeof(sums));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  float total = lane[0];
  for (int i = n / kLanes * kLanes; i < n; ++i) total += a[i] * b[i];
  return total;
}

// kRows x kOutputs dot products at once, each in the order of Dot.
//   x    kRows rows of k floats
//   w    kOutputs rows of k floats
//   out  [kRows, out_stride], the first kOutputs of each row
template <int kRows, int kOutputs>
[[gnu::always_inline]] inline void Tile(const float* x, const float* w, int k,
                                        float* out, int out_stride) {
  Lanes sums[kRows][kOutputs] = {};
  for (int i = 0; i + kLanes <= k; i += kLanes) {
    Lanes weights[kOutputs];
    for (int n = 0; n < kOutputs; ++n) {
      std::memcpy(&weights[n], w + static_cast<int64_t>(n) * k + i,
                  sizeof(Lanes));
    }
    for (int m = 0; m < kRows; ++m) {
      Lanes activations;
      std::memcpy(&activations, x + static_cast<int64_t>(m) * k + i,
                  sizeof(Lanes));
      for (int n = 0; n < kOutputs; ++n) {
        sums[m][n] += activations * weights[n];
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kOutputs; ++n) {
      out[static_cast<int64_t>(m) * out_stride + n] =
          Finish(sums[m][n], x + static_cast<int64_t>(m) * k,
                 w + static_cast<int64_t>(n) * k, k);
    }
  }
}

}  // namespace

IndexRange Share(int count, int thread, int threads) {
  auto cut = [&](int t) {
    return static_cast<int>(int64_t{count} * t / threads);
  };
  return {cut(thread), cut(thread + 1)};
}

PENSTOCK_VECTOR_CLONES
float Dot(const float* a, const float* b, int n) {
  float out;
  Tile<1, 1>(a, b, n, &out, 1);
  return out;
}

PENSTOCK_VECTOR_CLONES
void MatrixProduct(const float* x, int rows, const Matrix& w,
                   IndexRange outputs, float* out) {
  const int k = w.cols;
  int n = outputs.first;
  // A few rows of weights at a time, so that they stay in the nearest cache
  // while all rows of activations pass.
  for (; n + kTileOutputs <= outputs.last; n += kTileOutputs) {
    int m = 0;
    for (; m + kTileRows <= rows; m += kTileRows) {
      Tile<kTileRows, kTileOutputs>(x + static_cast<int64_t>(m) * k, w.row(n),
                                    k, out + int64_t{m} * w.rows + n, w.rows);
    }
    for (; m < rows; ++m) {
      Tile<1, kTileOutputs>(x + static_cast<int64_t>(m) * k, w.row(n), k,
                            out + int64_t{m} * w.rows + n, w.rows);
    }
  }
  for (; n < outputs.last; ++n) {
    for (int m = 0; m < rows; ++m) {
      Tile<1, 1>(x + static_cast<int64_t>(m) * k, w.row(n), k,
                 out + int64_t{m} * w.rows + n, w.rows);
    }
  }
}

PENSTOCK_VECTOR_CLONES
void AddScaled(float scale, const float* x, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] += scale * x[i];
}

}  // namespace penstock
