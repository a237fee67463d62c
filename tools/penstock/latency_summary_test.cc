#include "tools/penstock/latency_summary.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(PercentileTest, NearestRank) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);  // 100 .. 1
  EXPECT_EQ(Percentile(values, 50), 50);
  EXPECT_EQ(Percentile(values, 99), 99);
  EXPECT_EQ(Percentile(values, 100), 100);
  EXPECT_EQ(Percentile({7}, 1), 7);
  EXPECT_EQ(Percentile({1, 2, 3}, 50), 2);
  EXPECT_EQ(Percentile({}, 50), 0);
}

// Due at 0, first token at 10 ms, then two tokens every 20 ms.
RequestRecord Steady(double due_ms, int later_frames) {
  RequestRecord record;
  record.due_ms = due_ms;
  record.prompt_tokens = 5;
  record.cached_tokens = 4;
  record.frame_ms = {due_ms + 10};
  record.frame_tokens = {1};
  for (int i = 1; i <= later_frames; ++i) {
    record.frame_ms.push_back(record.frame_ms.back() + 20);
    record.frame_tokens.push_back(2);
  }
  record.end_ms = record.frame_ms.back() + 1;
  return record;
}

TEST(SummarizeLoadTest, ClosedForm) {
  RequestRecord failed;
  failed.failed = true;
  failed.prompt_tokens = failed.cached_tokens = 100;
  const nlohmann::json summary =
      SummarizeLoad({Steady(0, 3), Steady(100, 3), failed}, {}, 2000);
  EXPECT_EQ(summary["requests"], 3);
  EXPECT_EQ(summary["failed"], 1);
  EXPECT_EQ(summary["output_tokens"], 14);
  EXPECT_EQ(summary["prompt_tokens"], 10);
  EXPECT_EQ(summary["hit_rate"], 0.8);
  EXPECT_EQ(summary["output_tokens_per_s"], 7.0);
  EXPECT_EQ(summary["requests_per_s"], 1.0);
  EXPECT_EQ(summary["goodput_rps"], 1.0);
  EXPECT_EQ(summary["ttft_ms"]["p50"], 10.0);
  EXPECT_EQ(summary["itl_ms"]["p99"], 20.0);
  EXPECT_EQ(summary["tpot_ms"]["p50"], 10.0);  // 60 ms for six tokens
  EXPECT_EQ(summary["e2e_ms"]["max"], 71.0);
}

TEST(SummarizeLoadTest, GoodputCountsWhatMeetsBothBounds) {
  const std::vector<RequestRecord> records = {Steady(0, 3)};
  EXPECT_EQ(SummarizeLoad(records, {10, 10}, 1000)["goodput_rps"], 1.0);
  EXPECT_EQ(SummarizeLoad(records, {9, 10}, 1000)["goodput_rps"], 0.0);
  EXPECT_EQ(SummarizeLoad(records, {10, 9}, 1000)["goodput_rps"], 0.0);
}

TEST(SummarizeLoadTest, OneTokenHasNoTimePerToken) {
  const nlohmann::json summary = SummarizeLoad({Steady(0, 0)}, {10, 1}, 1000);
  EXPECT_EQ(summary["tpot_ms"]["p50"], 0.0);
  EXPECT_EQ(summary["goodput_rps"], 1.0);
}

TEST(SummarizeLoadTest, NothingHappened) {
  const nlohmann::json summary = SummarizeLoad({}, {}, 0);
  EXPECT_EQ(summary["output_tokens_per_s"], 0.0);
  EXPECT_EQ(summary["ttft_ms"]["p99"], 0.0);
  EXPECT_EQ(summary["hit_rate"], 0.0);
}

}  // namespace
}  // namespace penstock
