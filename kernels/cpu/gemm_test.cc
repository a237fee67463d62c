#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/kernel_test_support.h"
#include "kernels/cpu/weight_packer.h"

namespace penstock {
namespace {

std::vector<TensorType> AllTypes() {
  std::vector<TensorType> types;
  for (int i = 0; i < kTensorTypeCount; ++i) {
    types.push_back(static_cast<TensorType>(i));
  }
  return types;
}

// `blocks` of 32, or of the type's own where those are longer.
int DepthOf(TensorType type, int blocks) {
  return blocks * std::max(kScaleDepth, Traits(type).block_elements);
}

// A packed matrix that owns its bytes.
struct Packed {
  explicit Packed(const std::vector<ColumnSource>& columns,
                  bool bfloats = true) {
    WeightPacker packer(columns, bfloats);
    bytes.resize(packer.bytes());
    matrix = packer.shape();
    for (int panel = 0; panel < matrix.panels; ++panel) {
      packer.PackPanel(panel, bytes.data() + panel * matrix.panel_bytes);
    }
    matrix.data = bytes.data();
  }
  std::vector<uint8_t> bytes;
  PanelMatrix matrix;
};

std::vector<ColumnSource> RowsOf(const TestTensor& tensor) {
  std::vector<ColumnSource> columns;
  for (int64_t row = 0; row < tensor.view.rows(); ++row) {
    columns.push_back({&tensor.view, row});
  }
  return columns;
}

void QuantizeRows(const KernelTable& kernels, const std::vector<float>& x,
                  const Activations& out) {
  for (size_t row = 0; row * out.depth < x.size(); ++row) {
    kernels.quantize(x.data() + row * out.depth, 0, out.depth, out,
                     static_cast<int>(row));
    kernels.choose(out, static_cast<int>(row));
  }
}

// Rows [first, last) of the product, into y of `rows` rows.
void Multiply(const KernelTable& kernels, const PanelMatrix& matrix,
              const Activations& x, int first, int last, Epilogue epilogue,
              std::vector<float>& y, size_t stride) {
  GemmTask task;
  task.weights = &matrix;
  task.x = &x;
  task.first_row = first;
  task.last_row = last;
  task.last_panel = matrix.panels;
  task.epilogue = epilogue;
  task.y = y.data();
  task.y_stride = stride;
  kernels.gemm(task);
}

// An input as matrices of that type see it.
double InputAt(TensorType type, const TestActivations& x, int row, int k) {
  if (Traits(type).block_elements > 1) return x.At(row, k);
  const size_t at = size_t(row) * x.view.depth + k;
  return type == TensorType::kBF16 ? Bfloat16ToFloat(x.view.bfloats[at])
                                   : x.view.values[at];
}

// Against a sum in double over exactly dequantised weights and the activations
// as the kernel sees them.
void ExpectProduct(const TestTensor& weights, const TestActivations& x,
                   int rows, const std::vector<float>& y, size_t stride) {
  const int depth = x.view.depth;
  std::vector<float> w(depth);
  for (int64_t n = 0; n < weights.view.rows(); ++n) {
    DequantizeRow(weights.view, n, absl::MakeSpan(w));
    for (int m = 0; m < rows; ++m) {
      double sum = 0, size = 0;
      for (int k = 0; k < depth; ++k) {
        const double term = w[k] * InputAt(weights.view.type, x, m, k);
        sum += term;
        size += std::fabs(term);
      }
      ASSERT_NEAR(y[m * stride + n], sum, 1e-5 * size)
          << "row " << m << " column " << n;
    }
  }
}

class GemmTest : public testing::TestWithParam<TensorType> {};

TEST_P(GemmTest, MatchesASumInDouble) {
  const int depth = DepthOf(GetParam(), 5);  // an odd number of blocks
  constexpr int kColumns = 3 * 16 + 9;
  const TestTensor weights(GetParam(), kColumns, depth, 1);
  const Packed packed(RowsOf(weights));
  const size_t stride = packed.matrix.panels * kPanelColumns;
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    for (int refined : {0, 2, depth / kScaleDepth}) {
      for (int rows : {1, 2, 3, 7, 8, 9, 13, 64}) {
        SCOPED_TRACE(testing::Message() << kernels.name << ", " << refined
                                        << " refined, " << rows << " rows");
        TestActivations x(rows, depth, refined);
        QuantizeRows(kernels, TestNumbers(rows).Vector(rows * depth), x.view);
        std::vector<float> y(rows * stride, NAN);
        Multiply(kernels, packed.matrix, x.view, 0, rows, Epilogue::kStore, y,
                 stride);
        ExpectProduct(weights, x, rows, y, stride);
        // Columns that only fill the last panel are zero.
        EXPECT_EQ(y[kColumns], 0);
      }
    }
  }
}

TEST_P(GemmTest, IsTheSameBitsOnEveryPathAndForAnyRows) {
  const int depth = DepthOf(GetParam(), 3);
  constexpr int kRows = 29;
  const TestTensor weights(GetParam(), 7 * 16, depth, 2);
  const std::vector<float> values = TestNumbers(3).Vector(kRows * depth, -3, 5);
  const Packed packed(RowsOf(weights));
  const size_t stride = packed.matrix.panels * kPanelColumns;
  for (int refined : {0, 2, depth / kScaleDepth}) {
    std::vector<float> reference;
    for (CpuPath path : TestablePaths()) {
      const KernelTable& kernels = *FindKernels(path);
      SCOPED_TRACE(testing::Message()
                   << kernels.name << ", refined " << refined);
      TestActivations x(kRows, depth, refined);
      QuantizeRows(kernels, values, x.view);
      std::vector<float> whole(kRows * stride);
      Multiply(kernels, packed.matrix, x.view, 0, kRows, Epilogue::kStore,
               whole, stride);
      if (reference.empty()) reference = whole;
      EXPECT_TRUE(SameBits(whole, reference));
      for (int step : {1, 2, 3, 8}) {
        std::vector<float> parts(kRows * stride);
        for (int row = 0; row < kRows; row += step) {
          Multiply(kernels, packed.matrix, x.view, row,
                   std::min(kRows, row + step), Epilogue::kStore, parts,
                   stride);
        }
        EXPECT_TRUE(SameBits(parts, reference)) << step << " rows at a time";
      }
    }
  }
}

// Random shapes; the same numbers on every path, alone and in company.
TEST_P(GemmTest, AwkwardRowsSpoilNoOthers) {
  for (int seed = 1; seed <= 8; ++seed) {
    TestNumbers numbers(100 + seed);
    const int rows = numbers.Integer(1, 20);
    const int columns = numbers.Integer(1, 70);
    const int depth = DepthOf(GetParam(), numbers.Integer(1, 3));
    const int refined = numbers.Integer(0, depth / kScaleDepth);
    const TestTensor weights(GetParam(), columns, depth, seed);
    const Packed packed(RowsOf(weights));
    const std::vector<float> values = AwkwardRows(rows, depth, numbers);
    const size_t stride = packed.matrix.panels * kPanelColumns;
    std::vector<float> reference;
    for (CpuPath path : TestablePaths()) {
      const KernelTable& kernels = *FindKernels(path);
      SCOPED_TRACE(testing::Message() << kernels.name << ", seed " << seed);
      TestActivations x(rows, depth, refined);
      QuantizeRows(kernels, values, x.view);
      std::vector<float> together(rows * stride), alone(rows * stride);
      Multiply(kernels, packed.matrix, x.view, 0, rows, Epilogue::kStore,
               together, stride);
      for (int row = 0; row < rows; ++row) {
        Multiply(kernels, packed.matrix, x.view, row, row + 1, Epilogue::kStore,
                 alone, stride);
        if (FiniteRow(values, row, depth)) continue;
        for (int n = 0; n < columns; ++n) {
          EXPECT_FALSE(std::isfinite(together[row * stride + n]));
        }
      }
      if (reference.empty()) reference = together;
      EXPECT_TRUE(SameNumbers(together, reference));
      EXPECT_TRUE(SameNumbers(alone, reference));
    }
  }
}

// What a gate or a residual makes of a spoilt row: the same on every path.
TEST_P(GemmTest, AwkwardRowsStaySpoiltBehindGates) {
  constexpr int kRows = 9, kColumns = 64;
  const int depth = DepthOf(GetParam(), 2);
  const TestTensor weights(GetParam(), kColumns, depth, 9);
  const Packed packed(RowsOf(weights));
  TestNumbers numbers(10);
  const std::vector<float> values = AwkwardRows(kRows, depth, numbers);
  for (Epilogue epilogue :
       {Epilogue::kAdd, Epilogue::kGatedSilu, Epilogue::kGatedGelu}) {
    std::vector<float> reference;
    for (CpuPath path : TestablePaths()) {
      const KernelTable& kernels = *FindKernels(path);
      SCOPED_TRACE(testing::Message()
                   << kernels.name << " " << static_cast<int>(epilogue));
      TestActivations x(kRows, depth, 0);
      QuantizeRows(kernels, values, x.view);
      std::vector<float> y(kRows * kColumns, 0.5f);
      Multiply(kernels, packed.matrix, x.view, 0, kRows, epilogue, y, kColumns);
      if (reference.empty()) reference = y;
      EXPECT_TRUE(SameNumbers(y, reference));
      const int written = epilogue == Epilogue::kAdd ? kColumns : kColumns / 2;
      for (int row = 0; row < kRows; ++row) {
        if (FiniteRow(values, row, depth)) continue;
        for (int n = 0; n < written; ++n) {
          EXPECT_FALSE(std::isfinite(y[row * kColumns + n]));
        }
      }
    }
  }
}

TEST_P(GemmTest, GatesAndAdds) {
  constexpr int kRows = 3, kColumns = 32;
  const int depth = DepthOf(GetParam(), 2);
  const TestTensor gate(GetParam(), kColumns, depth, 4);
  const TestTensor up(GetParam(), kColumns, depth, 5);
  std::vector<ColumnSource> alternate;
  for (int panel = 0; panel < 2; ++panel) {
    for (const TestTensor* tensor : {&gate, &up}) {
      for (int i = 0; i < 16; ++i) {
        alternate.push_back({&tensor->view, panel * 16 + i});
      }
    }
  }
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(kernels.name);
    TestActivations x(kRows, depth, 0);
    QuantizeRows(kernels, TestNumbers(6).Vector(kRows * depth), x.view);
    auto product = [&](const TestTensor& weights) {
      const Packed packed(RowsOf(weights));
      std::vector<float> y(kRows * kColumns);
      Multiply(kernels, packed.matrix, x.view, 0, kRows, Epilogue::kStore, y,
               kColumns);
      return y;
    };
    const std::vector<float> gates = product(gate), ups = product(up);

    const Packed fused(alternate);
    std::vector<float> gated(kRows * kColumns);
    Multiply(kernels, fused.matrix, x.view, 0, kRows, Epilogue::kGatedSilu,
             gated, kColumns);
    for (size_t i = 0; i < gated.size(); ++i) {
      const double g = gates[i];
      const double expected = g / (1 + std::exp(-g)) * ups[i];
      EXPECT_NEAR(gated[i], expected, 1e-6 * std::fabs(expected));
    }
    std::vector<uint16_t> bfloats(gated.size());
    kernels.gemm({.weights = &fused.matrix,
                  .x = &x.view,
                  .last_row = kRows,
                  .last_panel = fused.matrix.panels,
                  .epilogue = Epilogue::kGatedSilu,
                  .y_stride = kColumns,
                  .bfloats = bfloats.data()});
    for (size_t i = 0; i < gated.size(); ++i) {
      const bool tiny = std::fabs(gated[i]) < kLeastBfloat;
      EXPECT_EQ(bfloats[i], tiny ? 0 : FloatToBfloat16(gated[i]));
    }
    Multiply(kernels, fused.matrix, x.view, 0, kRows, Epilogue::kGatedGelu,
             gated, kColumns);
    for (size_t i = 0; i < gated.size(); ++i) {
      const double g = gates[i];
      const double u = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
      const double expected = 0.5 * g * (1 + std::tanh(u)) * ups[i];
      EXPECT_NEAR(gated[i], expected,
                  2e-6 * std::fabs(ups[i]) * std::max(1.0, std::fabs(g)));
    }

    Packed plain(RowsOf(up));
    std::vector<float> sum(kRows * kColumns, 0.25f);
    Multiply(kernels, plain.matrix, x.view, 0, kRows, Epilogue::kAdd, sum,
             kColumns);
    for (size_t i = 0; i < sum.size(); ++i) {
      EXPECT_EQ(sum[i], 0.25f + ups[i]);
    }
    const std::vector<float> bias = TestNumbers(7).Vector(kColumns);
    plain.matrix.bias = bias.data();
    std::vector<float> biased(kRows * kColumns);
    Multiply(kernels, plain.matrix, x.view, 0, kRows, Epilogue::kStore, biased,
             kColumns);
    for (size_t i = 0; i < biased.size(); ++i) {
      EXPECT_EQ(biased[i], ups[i] + bias[i % kColumns]);
    }
  }
}

// Inputs in F32: what is left of a sum in double is the rounding of sums alone.
TEST(Bfloat16GemmTest, TakesInputsExactlyWhereAskedTo) {
  constexpr int kColumns = 32, kDepth = 96, kRows = 9;
  const TestTensor weights(TensorType::kBF16, kColumns, kDepth, 1);
  const Packed packed(RowsOf(weights), false);
  ASSERT_EQ(packed.matrix.format, PanelFormat::kExactBfloat16);
  std::vector<float> reference;
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(kernels.name);
    TestActivations x(kRows, kDepth, 0);
    QuantizeRows(kernels, TestNumbers(2).Vector(kRows * kDepth), x.view);
    std::vector<float> y(kRows * kColumns);
    Multiply(kernels, packed.matrix, x.view, 0, kRows, Epilogue::kStore, y,
             kColumns);
    std::vector<float> w(kDepth);
    for (int n = 0; n < kColumns; ++n) {
      DequantizeRow(weights.view, n, absl::MakeSpan(w));
      for (int m = 0; m < kRows; ++m) {
        double sum = 0;
        for (int k = 0; k < kDepth; ++k) {
          sum += double{w[k]} * x.view.values[m * kDepth + k];
        }
        EXPECT_NEAR(y[m * kColumns + n], sum, 1e-5);
      }
    }
    if (reference.empty()) reference = y;
    EXPECT_TRUE(SameBits(y, reference));
  }
}

// Instructions take denormals for zeros, other paths do not: none must arise,
// of operands or of products and sums.
TEST(Bfloat16GemmTest, TinyNumbersAreTheSameBitsOnEveryPath) {
  constexpr int kColumns = 16, kDepth = 64, kRows = 3;
  TestTensor weights(TensorType::kBF16, kColumns, kDepth, 1);
  TestNumbers numbers(2);
  // Columns from 2^-40 down to denormals, rows of three sizes.
  for (int i = 0; i < kColumns * kDepth; ++i) {
    const uint16_t number = FloatToBfloat16(
        std::ldexp(numbers.Between(-2, 2), -40 - 6 * (i / kDepth)));
    std::memcpy(&weights.bytes[2 * i], &number, 2);
  }
  std::vector<float> values(kRows * kDepth);
  for (int i = 0; i < kRows * kDepth; ++i) {
    values[i] = std::ldexp(numbers.Between(-2, 2), 8 - 36 * (i / kDepth));
  }
  const Packed packed(RowsOf(weights));
  std::vector<float> reference;
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(kernels.name);
    TestActivations x(kRows, kDepth, 0);
    QuantizeRows(kernels, values, x.view);
    std::vector<float> y(kRows * kColumns);
    Multiply(kernels, packed.matrix, x.view, 0, kRows, Epilogue::kStore, y,
             kColumns);
    for (float sum : y) {
      EXPECT_TRUE(sum == 0 || std::isnormal(sum)) << sum;
    }
    if (reference.empty()) reference = y;
    EXPECT_TRUE(SameBits(y, reference));
  }
}

// Of a pair the second number counts first: 2^24 - 2^24 + 1 is 1, and
// 2^24 + 1 - 2^24 is 0 when each sum is rounded.
TEST(Bfloat16GemmTest, SumsAreRoundedInTheOrderOfTheInstruction) {
  constexpr int kDepth = 32;
  TestTensor weights(TensorType::kBF16, 2, kDepth, 1);
  std::vector<float> numbers(2 * kDepth);
  numbers[1] = numbers[kDepth + 1] = 0x1p24f;
  numbers[3] = numbers[kDepth + 2] = -0x1p24f;
  numbers[2] = numbers[kDepth + 3] = 1;
  for (int i = 0; i < 2 * kDepth; ++i) {
    const uint16_t number = FloatToBfloat16(numbers[i]);
    std::memcpy(&weights.bytes[2 * i], &number, 2);
  }
  const Packed packed(RowsOf(weights));
  for (CpuPath path : TestablePaths()) {
    const KernelTable& kernels = *FindKernels(path);
    SCOPED_TRACE(kernels.name);
    TestActivations x(1, kDepth, 0);
    QuantizeRows(kernels, std::vector<float>(kDepth, 1.0f), x.view);
    std::vector<float> y(kPanelColumns);
    Multiply(kernels, packed.matrix, x.view, 0, 1, Epilogue::kStore, y,
             kPanelColumns);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GemmTest, testing::ValuesIn(AllTypes()),
                         [](const auto& info) {
                           return std::string(Traits(info.param).name);
                         });

TEST(WeightPackerTest, MixedTypesAreHeldAsFloats) {
  const TestTensor nibbles(TensorType::kQ4_1, 3, 64, 7);
  const TestTensor bytes(TensorType::kQ8_0, 2, 64, 8);
  const Packed packed({{&bytes.view, 1}, {&nibbles.view, 2}});
  ASSERT_EQ(packed.matrix.format, PanelFormat::kFloat);
  const float* panel = reinterpret_cast<const float*>(packed.bytes.data());
  std::vector<float> first(64), second(64);
  DequantizeRow(bytes.view, 1, absl::MakeSpan(first));
  DequantizeRow(nibbles.view, 2, absl::MakeSpan(second));
  for (int k = 0; k < 64; ++k) {
    EXPECT_EQ(panel[k * 16], first[k]);
    EXPECT_EQ(panel[k * 16 + 1], second[k]);
    EXPECT_EQ(panel[k * 16 + 2], 0);
  }
}

}  // namespace
}  // namespace penstock
