#include "common/model/files/tensor_view.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "common/model/files/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr uint16_t kHalf = 0x3800;   // 0.5
constexpr uint16_t kThree = 0x4200;  // 3

std::vector<float> Dequantize(TensorType type, const std::vector<uint8_t>& data,
                              int64_t columns) {
  TensorView view{
      .name = "t", .type = type, .shape = {1, columns}, .data = data};
  std::vector<float> out(columns);
  DequantizeRow(view, 0, absl::MakeSpan(out));
  return out;
}

std::vector<uint8_t> Block(std::initializer_list<uint16_t> scales,
                           std::initializer_list<uint8_t> first_quants,
                           size_t bytes) {
  std::vector<uint8_t> block;
  for (uint16_t scale : scales) {
    block.push_back(scale & 0xFF);
    block.push_back(scale >> 8);
  }
  block.insert(block.end(), first_quants);
  block.resize(bytes);
  return block;
}

// The definition of binary16, value by value.
TEST(Float16Test, AllValues) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    float sign = half & 0x8000 ? -1.0f : 1.0f;
    float value = F16ToF32(static_cast<uint16_t>(half));
    if (exponent == 31) {
      if (mantissa != 0) {
        ASSERT_TRUE(std::isnan(value)) << half;
      } else {
        ASSERT_EQ(value, sign * INFINITY) << half;
      }
      continue;
    }
    double expected = exponent == 0
                          ? std::ldexp(mantissa, -24)
                          : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(value, sign * expected) << half;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
  }
}

TEST(Float16Test, RoundsToNearestEven) {
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    ASSERT_EQ(F32ToF16(F16ToF32(half)), half);
  }
  EXPECT_EQ(F32ToF16(1.0f + 0x1p-11f), 0x3C00);      // tie, to even below
  EXPECT_EQ(F32ToF16(1.0f + 3 * 0x1p-11f), 0x3C02);  // tie, to even above
  EXPECT_EQ(F32ToF16(-65519.0f), 0xFBFF);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7C00);
}

TEST(DequantizeRowTest, Q8_0) {
  auto values = Dequantize(TensorType::kQ8_0,
                           Block({kHalf}, {0, 1, 127, 128, 255}, 34), 32);
  EXPECT_EQ(values[1], 0.5f);
  EXPECT_EQ(values[2], 63.5f);
  EXPECT_EQ(values[3], -64.0f);
  EXPECT_EQ(values[4], -0.5f);
  EXPECT_EQ(values[31], 0.0f);
}

TEST(DequantizeRowTest, Q4_0) {
  auto values = Dequantize(TensorType::kQ4_0, Block({kHalf}, {0x2F}, 18), 32);
  EXPECT_EQ(values[0], 0.5f * (15 - 8));
  EXPECT_EQ(values[16], 0.5f * (2 - 8));
  EXPECT_EQ(values[1], 0.5f * (0 - 8));
  EXPECT_EQ(values[31], 0.5f * (0 - 8));
}

TEST(DequantizeRowTest, Q4_1) {
  auto values =
      Dequantize(TensorType::kQ4_1, Block({kHalf, kThree}, {0x2F}, 20), 32);
  EXPECT_EQ(values[0], 0.5f * 15 + 3);
  EXPECT_EQ(values[16], 0.5f * 2 + 3);
  EXPECT_EQ(values[31], 3.0f);
}

TEST(DequantizeRowTest, PlainTypes) {
  EXPECT_THAT(Dequantize(TensorType::kF16, {0x00, 0x38, 0x00, 0xC2}, 2),
              testing::ElementsAre(0.5f, -3.0f));
  EXPECT_THAT(Dequantize(TensorType::kBF16, {0x00, 0x3F, 0x40, 0xC0}, 2),
              testing::ElementsAre(0.5f, -3.0f));
  EXPECT_THAT(Dequantize(TensorType::kF32, {0, 0, 0x40, 0xC0}, 1),
              testing::ElementsAre(-3.0f));
}

// The second row starts where the first one's blocks end.
TEST(DequantizeRowTest, RowsOfBlocks) {
  std::vector<uint8_t> data;
  for (uint8_t quant : {1, 2, 3, 4}) {
    auto block = Block({kHalf}, {quant}, 34);
    data.insert(data.end(), block.begin(), block.end());
  }
  TensorView view{
      .name = "t", .type = TensorType::kQ8_0, .shape = {2, 64}, .data = data};
  std::vector<float> out(64);
  DequantizeRow(view, 1, absl::MakeSpan(out));
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[32], 2.0f);
}

TEST(TensorTypeTest, IdsOnDisk) {
  EXPECT_EQ(TensorTypeOfGgufId(3), TensorType::kQ4_1);
  EXPECT_EQ(TensorTypeOfGgufId(30), TensorType::kBF16);
  EXPECT_EQ(TensorTypeOfGgufId(4), std::nullopt);  // Q4_2, withdrawn
  EXPECT_EQ(GgufTensorTypeName(14), "Q6_K");
  EXPECT_EQ(GgufTensorTypeName(8), "Q8_0");
  EXPECT_EQ(GgufTensorTypeName(1u << 31), "unknown");
}

TEST(DequantizeRowDeathTest, RowMustExist) {
  std::vector<uint8_t> data(4);
  TensorView view{
      .name = "t", .type = TensorType::kF32, .shape = {1}, .data = data};
  float out[1];
  EXPECT_DEATH(DequantizeRow(view, 1, absl::MakeSpan(out)), "t row 1");
}

}  // namespace
}  // namespace penstock
