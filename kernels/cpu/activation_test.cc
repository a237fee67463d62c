#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/kernel_test_support.h"

namespace penstock {
namespace {

constexpr int kBlocks = 3;
constexpr int kDepth = kBlocks * kScaleDepth;

TEST(ActivationTest, TermsLeaveErrorsOfTheirStep) {
  const std::vector<float> x = TestNumbers(1).Vector(kDepth, -20, 3);
  for (CpuPath path : TestablePaths()) {
    TestActivations out(1, kDepth, kBlocks);
    FindKernels(path)->quantize(x.data(), 0, kDepth, out.view, 0);
    for (int k = 0; k < kDepth; ++k) {
      const float scale = out.view.scales[k / kScaleDepth];
      const double first = out.Term(0, k, 0);
      EXPECT_NEAR(first, x[k], 0.501 * scale);
      EXPECT_NEAR(first + out.Term(0, k, 1), x[k], 0.51 * scale / 254);
      EXPECT_EQ(out.view.values[k], x[k]);
    }
  }
}

TEST(ActivationTest, BfloatsAreTheNearestAndNoneIsTiny) {
  std::vector<float> x = TestNumbers(11).Vector(kDepth, -20, 3);
  x[0] = 1.00390625f;  // between 1 and the next: ties go to even
  x[1] = 1.01171875f;
  x[2] = 0x1p-55f;
  x[3] = -0x1.fffp-56f;
  x[4] = 1e-40f;
  x[5] = INFINITY;
  x[6] = NAN;
  x[7] = 3.4e38f;
  for (CpuPath path : TestablePaths()) {
    SCOPED_TRACE(CpuPathName(path));
    TestActivations out(1, kDepth, 1);
    FindKernels(path)->quantize(x.data(), 0, kDepth, out.view, 0);
    auto bfloat = [&](int k) { return Bfloat16ToFloat(out.view.bfloats[k]); };
    EXPECT_EQ(bfloat(0), 1.0f);
    EXPECT_EQ(bfloat(1), 1.015625f);
    EXPECT_EQ(bfloat(2), 0x1p-55f);
    EXPECT_EQ(bfloat(3), 0);
    EXPECT_EQ(bfloat(4), 0);
    EXPECT_EQ(bfloat(5), INFINITY);
    EXPECT_TRUE(std::isnan(bfloat(6)));
    EXPECT_EQ(bfloat(7), INFINITY);
    for (int k = 8; k < kDepth; ++k) {
      EXPECT_NEAR(bfloat(k), x[k], 0x1p-8 * std::fabs(x[k]));
    }
  }
}

TEST(ActivationTest, SumsAreThoseOfTheQuants) {
  const std::vector<float> x = TestNumbers(2).Vector(kDepth);
  for (CpuPath path : TestablePaths()) {
    TestActivations out(1, kDepth, kBlocks);
    FindKernels(path)->quantize(x.data(), 0, kDepth, out.view, 0);
    for (int block = 0; block < 2 * kDepth / kScaleDepth; ++block) {
      int32_t sum = 0;
      for (int i = 0; i < kScaleDepth; ++i) {
        sum += out.view.quants[block * kScaleDepth + i];
      }
      EXPECT_EQ(out.view.sums[block], sum);
      int32_t first = 0;
      for (int i = 0; i < kScaleDepth / 2; ++i) {
        first += out.view.quants[block * kScaleDepth + i];
      }
      EXPECT_EQ(out.view.half_sums[2 * block], first);
      EXPECT_EQ(out.view.half_sums[2 * block + 1], sum - first);
      EXPECT_EQ(out.view.scaled_sums[block], out.view.scales[block] * sum);
    }
  }
}

// Against a sort. Scales that differ by less than a part in 8 may count as
// equal, of which the first are chosen.
TEST(ActivationTest, ChoosesTheLargestScales) {
  for (int seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestNumbers numbers(seed);
    const int blocks = numbers.Integer(1, 70);
    const int refined = numbers.Integer(1, blocks);
    const int depth = blocks * kScaleDepth;
    std::vector<float> x = numbers.Vector(depth, -1, 1);
    std::vector<int> sizes;  // powers of two, some alike
    for (int k = 0; k < depth; ++k) {
      if (k % kScaleDepth == 0) sizes.push_back(numbers.Integer(-20, 20));
      if (k % kScaleDepth == 7) x[k] = 1;
      x[k] = std::ldexp(x[k], sizes.back());
    }
    std::vector<uint16_t> expected(blocks);
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int a, int b) { return sizes[a] > sizes[b]; });
    expected.resize(refined);
    std::sort(expected.begin(), expected.end());
    for (CpuPath path : TestablePaths()) {
      TestActivations out(2, depth, refined);
      FindKernels(path)->quantize(x.data(), 0, depth, out.view, 1);
      FindKernels(path)->choose(out.view, 1);
      const uint16_t* chosen = out.view.chosen + refined;
      EXPECT_EQ(std::vector<uint16_t>(chosen, chosen + refined), expected);
    }
  }
}

// A block that holds no number counts as the largest; one of zeros is chosen
// where there is nothing else.
TEST(ActivationTest, ChoosesWhatIsNoNumberFirstAndZerosLast) {
  std::vector<float> x(kDepth, 1);
  x[kScaleDepth] = NAN;
  std::fill_n(x.begin() + 2 * kScaleDepth, kScaleDepth, 0.0f);
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    TestActivations one(1, kDepth, 1), two(1, kDepth, 2), all(1, kDepth, 3);
    for (TestActivations* out : {&one, &two, &all}) {
      kernels.quantize(x.data(), 0, kDepth, out->view, 0);
      kernels.choose(out->view, 0);
    }
    EXPECT_EQ(one.view.chosen[0], 1);
    EXPECT_EQ(two.view.chosen[0], 0);
    EXPECT_EQ(two.view.chosen[1], 1);
    EXPECT_EQ(all.view.chosen[2], 2);
  }
}

TEST(ActivationTest, NormalizesToUnitMeanSquare) {
  const std::vector<float> x = TestNumbers(3).Vector(kDepth, -2, 7);
  const std::vector<float> gain = TestNumbers(4).Vector(kDepth, 0, 2);
  double squares = 0;
  for (float v : x) squares += double{v} * v;
  const double factor = 1 / std::sqrt(squares / kDepth + 1e-5);
  for (CpuPath path : TestablePaths()) {
    TestActivations out(1, kDepth, 0);
    FindKernels(path)->normalize(x.data(), gain.data(), 1e-5f, out.view, 0);
    for (int k = 0; k < kDepth; ++k) {
      const double expected = x[k] * factor * gain[k];
      EXPECT_NEAR(out.view.values[k], expected, 1e-6 * std::fabs(expected));
    }
  }
}

TEST(ActivationTest, NormalizesInPlaceAndAddsScaled) {
  const std::vector<float> x = TestNumbers(7).Vector(48, -2, 7);
  const std::vector<float> gain = TestNumbers(8).Vector(48, 0, 2);
  double squares = 0;
  for (float v : x) squares += double{v} * v;
  const double factor = 1 / std::sqrt(squares / 48 + 1e-5);
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    std::vector<float> y = x;
    kernels.normalize_in_place(y.data(), gain.data(), 1e-5f, 48);
    for (int k = 0; k < 48; ++k) {
      EXPECT_NEAR(y[k], x[k] * factor * gain[k], 1e-6 * std::fabs(y[k]));
    }
    y = x;
    kernels.add_scaled(gain.data(), 0.3f, 48, y.data());
    for (int k = 0; k < 48; ++k) {
      EXPECT_NEAR(y[k], x[k] + double{0.3f} * gain[k], 1e-6);
    }
  }
}

TEST(ActivationTest, CapsSoftly) {
  std::vector<float> x = TestNumbers(9).Vector(62, -200, 200);
  x.insert(x.end(), {0.0f, -1e-3f});
  std::vector<float> reference;
  for (CpuPath path : TestablePaths()) {
    std::vector<float> capped = x, scaled = x;
    FindKernels(path)->soft_cap(capped.data(), 0.5f, 30, 64);
    FindKernels(path)->soft_cap(scaled.data(), 0.5f, 0, 64);
    for (int k = 0; k < 64; ++k) {
      EXPECT_NEAR(capped[k], 30 * std::tanh(0.5 * x[k] / 30), 1e-5);
      EXPECT_EQ(scaled[k], 0.5f * x[k]);
    }
    if (reference.empty()) reference = capped;
    EXPECT_TRUE(SameBits(capped, reference));
  }
}

TEST(ActivationTest, ZeroTinyAndHugeBlocksAreFinite) {
  std::vector<float> x(kDepth, 0.0f);
  for (int k = 32; k < 64; ++k) x[k] = 1e-38f;
  for (int k = 64; k < 96; ++k) x[k] = k % 2 ? 3e38f : -3e38f;
  for (CpuPath path : TestablePaths()) {
    TestActivations out(1, kDepth, kBlocks);
    FindKernels(path)->quantize(x.data(), 0, kDepth, out.view, 0);
    EXPECT_EQ(out.Term(0, 3, 0) + out.Term(0, 3, 1), 0);
    EXPECT_EQ(out.Term(0, 40, 0) + out.Term(0, 40, 1), 0);
    EXPECT_NEAR(out.Term(0, 65, 0), 3e38, 3e32);
  }
}

std::vector<float> Floats(const float* from, size_t count) {
  return {from, from + count};
}

void ExpectSame(const TestActivations& out, const TestActivations& reference,
                int rows) {
  const Activations& a = out.view;
  const Activations& b = reference.view;
  const size_t elements = size_t(rows) * a.terms * a.depth;
  const size_t blocks = elements / kScaleDepth;
  EXPECT_EQ(0, std::memcmp(a.quants, b.quants, elements));
  EXPECT_EQ(0, std::memcmp(a.sums, b.sums, blocks * sizeof(int32_t)));
  EXPECT_EQ(
      0, std::memcmp(a.half_sums, b.half_sums, 2 * blocks * sizeof(int32_t)));
  EXPECT_TRUE(SameNumbers(Floats(a.scales, blocks), Floats(b.scales, blocks)));
  EXPECT_TRUE(SameNumbers(Floats(a.scaled_sums, blocks),
                          Floats(b.scaled_sums, blocks)));
  EXPECT_TRUE(
      std::equal(a.chosen, a.chosen + size_t(rows) * a.refined, b.chosen));
  const size_t values = size_t(rows) * a.depth;
  EXPECT_TRUE(SameNumbers(Floats(a.values, values), Floats(b.values, values)));
}

// Block by block what kernel_table.h says of row `row` of x.
void ExpectQuantized(const std::vector<float>& x, int row,
                     const TestActivations& out) {
  const int depth = out.view.depth;
  const int blocks = depth / kScaleDepth;
  for (int block = 0; block < blocks; ++block) {
    const std::vector<float> in =
        Floats(x.data() + row * depth + block * kScaleDepth, kScaleDepth);
    const size_t at = size_t(row) * out.view.terms * blocks + block;
    const float scale = out.view.scales[at];
    if (!FiniteRow(in, 0, kScaleDepth)) {
      for (int term = 0; term < out.view.terms; ++term) {
        EXPECT_TRUE(std::isnan(out.view.scales[at + term * blocks]));
        EXPECT_TRUE(std::isnan(out.view.scaled_sums[at + term * blocks]));
      }
      continue;
    }
    for (int i = 0; i < kScaleDepth; ++i) {
      const double value = out.Term(row, block * kScaleDepth + i, 0);
      EXPECT_NEAR(value, in[i], 0.501 * scale + 1e-30);
    }
  }
}

TEST(ActivationTest, AwkwardRowsAreTheSameOnEveryPath) {
  for (int seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    TestNumbers numbers(seed);
    const int rows = numbers.Integer(1, 7);
    const int blocks = numbers.Integer(1, 5);
    const int depth = kScaleDepth * blocks;
    const int refined = numbers.Integer(0, blocks);
    const std::vector<float> x = AwkwardRows(rows, depth, numbers);
    const std::vector<float> gain = numbers.Vector(depth, -1, 2);
    TestActivations first_plain(rows, depth, refined);
    TestActivations first_norm(rows, depth, refined);
    for (CpuPath path : TestablePaths()) {
      const KernelTable& kernels = *FindKernels(path);
      TestActivations own_plain(rows, depth, refined);
      TestActivations own_norm(rows, depth, refined);
      const bool first = path == CpuPath::kScalar;
      const TestActivations& plain = first ? first_plain : own_plain;
      const TestActivations& norm = first ? first_norm : own_norm;
      for (int row = 0; row < rows; ++row) {
        const float* from = x.data() + row * depth;
        kernels.quantize(from, 0, depth, plain.view, row);
        kernels.choose(plain.view, row);
        kernels.normalize(from, gain.data(), 1e-5f, norm.view, row);
        ExpectQuantized(x, row, plain);
        if (FiniteRow(x, row, depth)) continue;
        for (int k = 0; k < depth; ++k) {
          EXPECT_TRUE(std::isnan(norm.view.values[row * depth + k]));
        }
      }
      ExpectSame(plain, first_plain, rows);
      ExpectSame(norm, first_norm, rows);
    }
  }
}

// In place, row by row; what is not a number stays none.
TEST(ActivationTest, AwkwardRowsInPlaceAreTheSameOnEveryPath) {
  constexpr int kCount = 16 * 12;
  TestNumbers numbers(11);
  const std::vector<float> awkward = AwkwardNumbers();
  std::vector<float> x = numbers.Vector(kCount, -3, 3);
  std::copy(awkward.begin(), awkward.end(), x.begin() + 5);
  const std::vector<float> gain = numbers.Vector(kCount);
  std::vector<float> references[3];
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(kernels.name);
    std::vector<float> norm = x, added = x, capped = x;
    kernels.normalize_in_place(norm.data(), gain.data(), 1e-5f, kCount);
    kernels.add_scaled(gain.data(), 0.5f, kCount, added.data());
    kernels.soft_cap(capped.data(), 1, 30, kCount);
    for (int k = 0; k < kCount; ++k) {
      EXPECT_TRUE(std::isnan(norm[k]));
      EXPECT_EQ(std::isfinite(added[k]), std::isfinite(x[k]));
      EXPECT_EQ(std::isnan(capped[k]), std::isnan(x[k]));
      EXPECT_FALSE(std::fabs(capped[k]) > 30);
    }
    const std::vector<float> results[] = {norm, added, capped};
    for (int i = 0; i < 3; ++i) {
      if (path == CpuPath::kScalar) references[i] = results[i];
      EXPECT_TRUE(SameNumbers(results[i], references[i])) << i;
    }
  }
}

TEST(ActivationTest, IsTheSameBitsOnEveryPath) {
  constexpr int kRows = 5;
  const std::vector<float> x = TestNumbers(5).Vector(kRows * kDepth, -1000, 30);
  const std::vector<float> gain = TestNumbers(6).Vector(kDepth, -1, 2);
  TestActivations reference(kRows, kDepth, 2);
  for (CpuPath path : TestablePaths()) {
    TestActivations out(kRows, kDepth, 2);
    const Activations& to =
        path == CpuPath::kScalar ? reference.view : out.view;
    for (int row = 0; row < kRows; ++row) {
      FindKernels(path)->normalize(x.data() + row * kDepth, gain.data(), 1e-5f,
                                   to, row);
    }
    const size_t elements = kRows * 2 * kDepth;
    EXPECT_EQ(0, std::memcmp(to.quants, reference.view.quants, elements));
    EXPECT_EQ(0, std::memcmp(to.scales, reference.view.scales,
                             elements / kScaleDepth * sizeof(float)));
    EXPECT_EQ(0, std::memcmp(to.values, reference.view.values,
                             kRows * kDepth * sizeof(float)));
    EXPECT_EQ(0, std::memcmp(to.bfloats, reference.view.bfloats,
                             kRows * kDepth * sizeof(uint16_t)));
  }
}

// Known values of IEEE 754 binary16.
TEST(HalfTest, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(FloatToHalf(-2.0f), 0xc000);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);  // a tie goes to even
  EXPECT_EQ(FloatToHalf(0x1.8p-24f), 0x0002);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1.8p-10f), 0x3c02);
  EXPECT_EQ(FloatToHalf(INFINITY), 0x7c00);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(NAN))));
}

TEST(HalfTest, EveryHalfSurvives) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalf(value), bits);
  }
}

}  // namespace
}  // namespace penstock
