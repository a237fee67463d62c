#include "common/model/files/quant_groups.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/model/files/quantizer.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

std::vector<uint8_t> ReadBytes(absl::string_view name) {
  const std::string path =
      absl::StrCat(PENSTOCK_TEST_DATA, "/tensor_types/", name);
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<float> ReadFloats(absl::string_view name) {
  std::vector<uint8_t> bytes = ReadBytes(name);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

std::string FileStem(TensorType type) {
  return absl::AsciiStrToLower(Traits(type).name);
}

std::string TestName(const testing::TestParamInfo<TensorType>& info) {
  return std::string(Traits(info.param).name);
}

// All but F32, which is stored as it is; or only those with groups.
std::vector<TensorType> StoredTypes(bool only_quantised) {
  std::vector<TensorType> types;
  for (int i = 1; i < kTensorTypeCount; ++i) {
    const TensorType type = static_cast<TensorType>(i);
    if (only_quantised && QuantTraitsOf(type) == nullptr) continue;
    types.push_back(type);
  }
  return types;
}

// tests/data/tensor_types: blocks and values by an independent implementation.
class TensorTypeTest : public testing::TestWithParam<TensorType> {
 protected:
  // Two rows of the blocks in the file.
  void SetUp() override {
    bytes_ = ReadBytes(absl::StrCat(FileStem(GetParam()), ".blocks"));
    expected_ = ReadFloats(absl::StrCat(FileStem(GetParam()), ".f32"));
    const int64_t elements = static_cast<int64_t>(expected_.size());
    ASSERT_GT(elements, 0);
    view_ = {.name = "t",
             .type = GetParam(),
             .shape = {2, elements / 2},
             .data = bytes_};
  }

  std::vector<uint8_t> bytes_;
  std::vector<float> expected_;
  TensorView view_;
};

TEST_P(TensorTypeTest, DequantizesExactly) {
  std::vector<float> values(expected_.size());
  for (int64_t row = 0; row < 2; ++row) {
    DequantizeRow(
        view_, row,
        absl::MakeSpan(values).subspan(row * view_.cols(), view_.cols()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], expected_[i]) << i;
  }
}

using QuantisedTypeTest = TensorTypeTest;

TEST_P(QuantisedTypeTest, GroupsGiveTheSameValues) {
  const QuantTraits* traits = QuantTraitsOf(GetParam());
  const int64_t cols = view_.cols(), groups = cols / traits->group_elements;
  std::vector<int8_t> quants(cols);
  std::vector<float> scales(groups), minimums(traits->has_minimum ? groups : 0);
  UnpackGroups(view_, 1,
               {.quants = absl::MakeSpan(quants),
                .scales = absl::MakeSpan(scales),
                .minimums = absl::MakeSpan(minimums)});
  int least = 127, greatest = -128;
  for (int64_t i = 0; i < cols; ++i) {
    const int64_t group = i / traits->group_elements;
    least = std::min<int>(least, quants[i]);
    greatest = std::max<int>(greatest, quants[i]);
    float value = scales[group] * static_cast<float>(quants[i]);
    if (traits->has_minimum) value -= minimums[group];
    ASSERT_EQ(value, expected_[cols + i]) << i;
  }
  EXPECT_EQ(least, traits->least);
  EXPECT_EQ(greatest, traits->greatest);
}

INSTANTIATE_TEST_SUITE_P(EveryType, TensorTypeTest,
                         testing::ValuesIn(StoredTypes(false)), TestName);
INSTANTIATE_TEST_SUITE_P(EveryType, QuantisedTypeTest,
                         testing::ValuesIn(StoredTypes(true)), TestName);

class QuantizerTest : public testing::TestWithParam<TensorType> {};

TEST_P(QuantizerTest, EqualsTheReferenceToTheByte) {
  const std::vector<float> source = ReadFloats("source.f32");
  const std::vector<uint8_t> expected =
      ReadBytes(absl::StrCat(FileStem(GetParam()), ".quantized"));
  ASSERT_TRUE(CanQuantizeTo(GetParam()));
  std::vector<uint8_t> stored(expected.size());
  QuantizeRow(GetParam(), source, absl::MakeSpan(stored));
  for (size_t i = 0; i < stored.size(); ++i) {
    ASSERT_EQ(stored[i], expected[i])
        << "byte " << i << ", block " << i / Traits(GetParam()).block_bytes;
  }
}

// Undefined conversions are what a sanitizer build would find here.
TEST_P(QuantizerTest, TakesWhatIsNotFinite) {
  std::vector<float> values(32, 1.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[4] = std::numeric_limits<float>::infinity();
  values[5] = -std::numeric_limits<float>::infinity();
  values[6] = 1e-42f;
  const TensorTypeTraits& traits = Traits(GetParam());
  std::vector<uint8_t> stored(32 / traits.block_elements * traits.block_bytes);
  QuantizeRow(GetParam(), values, absl::MakeSpan(stored));
}

INSTANTIATE_TEST_SUITE_P(EveryType, QuantizerTest,
                         testing::Values(TensorType::kF16, TensorType::kBF16,
                                         TensorType::kQ4_0, TensorType::kQ4_1,
                                         TensorType::kQ5_0, TensorType::kQ5_1,
                                         TensorType::kQ8_0),
                         TestName);

TEST(QuantizerTest, OnlyTheTypesThatItSays) {
  EXPECT_TRUE(CanQuantizeTo(TensorType::kF32));
  EXPECT_FALSE(CanQuantizeTo(TensorType::kQ4_K));
  EXPECT_FALSE(CanQuantizeTo(TensorType::kIQ4_XS));
}

TEST(TensorTypeNameTest, NamesInEitherCase) {
  EXPECT_EQ(TensorTypeOfName("q4_k"), TensorType::kQ4_K);
  EXPECT_EQ(TensorTypeOfName("IQ4_nl"), TensorType::kIQ4_NL);
  EXPECT_EQ(TensorTypeOfName("q9"), std::nullopt);
}

}  // namespace
}  // namespace penstock
