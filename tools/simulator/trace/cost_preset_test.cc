#include "tools/simulator/trace/cost_preset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(CostPresetTest, EachIsFoundByItsNameAndMakesAModel) {
  for (const std::string& name : CostPresetNames()) {
    const auto preset = FindCostPreset(name);
    ASSERT_TRUE(preset.ok()) << preset.status();
    EXPECT_EQ(preset->name, name);
    EXPECT_TRUE(CostModel::Create(preset->cost).ok()) << name;
    EXPECT_GT(preset->pool_blocks, 0) << name;
  }
  const absl::Status unknown = FindCostPreset("abacus").status();
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("a100x4-70b"));
}

TEST(CostPresetTest, A100FollowsFromTheDataSheet) {
  const auto preset = FindCostPreset("a100x4-70b");
  ASSERT_TRUE(preset.ok());
  EXPECT_EQ(preset->kv_token_bytes(), 320 << 10);
  const auto cost = CostModel::Create(preset->cost);
  ASSERT_TRUE(cost.ok());
  auto ms = [](absl::Duration d) { return absl::ToDoubleMilliseconds(d); };
  // 140 GB over 4 x 2039 GB/s x 0.75, and 160 all-reduces of 25 us.
  EXPECT_NEAR(ms(cost->DecodeStep(1, 0)), 22.9 + 4, 0.2);
  // Bound by arithmetic: 256 x 140 GFLOP over 4 x 312 TFLOP/s x 0.5.
  EXPECT_NEAR(ms(cost->DecodeStep(256, 0)), 57.4 + 4, 0.5);
  // 1000 tokens: 140 TFLOP over 624 TFLOP/s; attention adds half a million
  // pairs of 2.6 MFLOP.
  EXPECT_NEAR(ms(cost->Prefill(1000, 0)), 224.4 + 4 + 2.1, 0.5);
  // A GB of KV over 85 GB/s.
  EXPECT_NEAR(ms(cost->Transfer(1'000'000'000)), 11.8 + 0.1, 0.1);
  // 4 x 72 GB less 140 GB, in blocks of 5 MiB.
  EXPECT_NEAR(preset->pool_blocks, 28229, 1);
}

}  // namespace
}  // namespace penstock
