#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/files/tensor_view.h"
#include "kernels/cpu/cpu_path.h"
#include "kernels/cpu/kernel_table.h"

namespace penstock {

// Small deterministic numbers for kernel tests.
class TestNumbers {
 public:
  explicit TestNumbers(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Bits();
  int Integer(int least, int most);
  float Between(float low, float high);
  std::vector<float> Vector(size_t count, float low = -1, float high = 1);

 private:
  uint64_t state_;
};

// Zeros of both signs, denormals, what is very small or large, infinities and
// NaN.
std::vector<float> AwkwardNumbers();

// Random rows, some of usual numbers, some with one awkward number among them,
// with many, or of nothing else.
std::vector<float> AwkwardRows(int rows, int depth, TestNumbers& numbers);

// Whether row `row` of x has neither NaN nor infinity.
bool FiniteRow(const std::vector<float>& x, int row, int depth);

// A matrix of random elements in any stored type; owns its bytes.
struct TestTensor {
  TestTensor(TensorType type, int64_t rows, int64_t cols, uint64_t seed);
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  std::vector<uint8_t> bytes;
  TensorView view;
};

// Activations that own their memory.
struct TestActivations {
  TestActivations(int rows, int depth, int refined);
  TestActivations(const TestActivations&) = delete;
  TestActivations& operator=(const TestActivations&) = delete;
  // One term of an element; exact.
  double Term(int row, int k, int term) const;
  // What the matrices see of an element, once the row has chosen; exact.
  double At(int row, int k) const;

  Activations view;

 private:
  std::vector<int8_t> quants_;
  std::vector<float> scales_, scaled_sums_, values_;
  std::vector<int32_t> sums_, half_sums_;
  std::vector<uint16_t> bfloats_, chosen_;
};

// The paths that this machine can run, the scalar one first. Says on stdout
// which ones it cannot.
std::vector<CpuPath> TestablePaths();

// Uses the bit patterns: equal NaNs are equal, and 0 differs from -0.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b);
// The same, except that any NaN equals any other.
bool SameNumbers(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace penstock
