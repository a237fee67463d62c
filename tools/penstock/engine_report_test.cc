#include "tools/penstock/engine_report.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

EngineReport Report() {
  EngineReport report = {.cores = 4,
                         .threads = 2,
                         .backend = "cpu-test",
                         .kv_type = "f16",
                         .limits = {.read_bytes_per_s = 40e9,
                                    .int8_ops_per_s = 1000e9,
                                    .bfloat16_ops_per_s = 500e9,
                                    .float_ops_per_s = 250e9}};
  EngineBenchRow prefill = {.size = 512, .steps = 1, .seconds = 0.5};
  prefill.tokens_per_second = 1024;
  prefill.cost.weight_bytes = 100'000'000;
  prefill.cost.int8_ops = 200'000'000'000;
  prefill.cost.float_ops = 50'000'000'000;
  report.rows.push_back(prefill);
  EngineBenchRow decode = {
      .decode = true, .size = 8, .depth = 16, .steps = 10, .seconds = 0.1};
  decode.tokens_per_second = 800;
  decode.cost.weight_bytes = 1'000'000'000;
  decode.cost.kv_bytes = 1'000'000'000;
  decode.cost.int8_ops = 10'000'000'000;
  report.rows.push_back(decode);
  return report;
}

TEST(EngineReportTest, SharesAreLeastTimeOverTimeTaken) {
  const nlohmann::json json = Report().ToJson();
  ASSERT_EQ(json["prefill"].size(), 1u);
  const nlohmann::json& prefill = json["prefill"][0];
  EXPECT_EQ(prefill["tokens"], 512);
  EXPECT_EQ(prefill["limited_by"], "compute");
  EXPECT_DOUBLE_EQ(prefill["share_of_limit"], (0.2 + 0.2) / 0.5);
  EXPECT_DOUBLE_EQ(prefill["share_of_read_limit"], 0.0025 / 0.5);
  EXPECT_DOUBLE_EQ(prefill["operations_per_s"], 500e9);
  const nlohmann::json& decode = json["decode"][0];
  EXPECT_EQ(decode["batch"], 8);
  EXPECT_EQ(decode["depth"], 16);
  EXPECT_EQ(decode["limited_by"], "memory");
  EXPECT_DOUBLE_EQ(decode["share_of_limit"], 0.05 / 0.1);
  EXPECT_DOUBLE_EQ(decode["share_of_compute_limit"], 0.01 / 0.1);
  EXPECT_DOUBLE_EQ(decode["bytes_per_step"], 200e6);
  EXPECT_DOUBLE_EQ(decode["bytes_per_s"], 20e9);
}

TEST(EngineReportTest, TableNamesLimitsAndShares) {
  const std::string table = Report().ToTable();
  EXPECT_NE(table.find("read 40.0 GB/s, int8 1000"), std::string::npos);
  EXPECT_NE(table.find("greedy sampling"), std::string::npos);
  EXPECT_NE(
      table.find(
          "prefill 512                1024.0    100.0   250.00     0.2   500.0"
          "    ops   80%"),
      std::string::npos)
      << table;
  EXPECT_NE(
      table.find(
          "decode, batch 8 at 16       800.0    200.0     1.00    20.0   100.0"
          "   read   50%"),
      std::string::npos)
      << table;
}

}  // namespace
}  // namespace penstock
