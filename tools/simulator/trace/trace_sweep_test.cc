#include "tools/simulator/trace/trace_sweep.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TraceReport Report(int64_t good, absl::Duration elapsed, absl::Duration ttft) {
  TraceReport report;
  report.requests = 10;
  report.good = good;
  report.elapsed = elapsed;
  report.ttft.Add(ttft);
  return report;
}

TEST(TraceSweepTest, JudgesByTheYardstickAndTheBestOther) {
  const absl::Duration s = absl::Seconds(1);
  const TraceSweepOptions options;
  const std::vector<TraceSweepRow> rows = {
      {1, 3, PolicyKind::kRoundRobin, Report(6, 10 * s, 8 * s)},
      {1, 3, PolicyKind::kLeastLoad, Report(9, 10 * s, 1 * s)},
      {1, 3, PolicyKind::kPrefixAware, Report(8, 10 * s, 2 * s)},
      {4, 12, PolicyKind::kRoundRobin, Report(4, 10 * s, 9 * s)},
      {4, 12, PolicyKind::kLeastLoad, Report(2, 10 * s, 9 * s)},
      {4, 12, PolicyKind::kPrefixAware, Report(3, 10 * s, 9 * s)},
  };
  const TraceSweepVerdict verdict =
      JudgeTraceSweep(rows, options, PolicyKind::kPrefixAware);
  EXPECT_NEAR(verdict.ttft_gain, 4, 0.05);  // a histogram's bucket
  EXPECT_DOUBLE_EQ(verdict.worst_goodput, 0.75);
  EXPECT_EQ(verdict.worst_factor, 4);
}

// Prompts of 1,000 tokens that share nothing, one a second: about 0.23 s of
// prefill each, so one worker is full a little above four times that rate.
TEST(TraceSweepTest, FindsWhereTheYardstickFails) {
  std::vector<TraceRequest> trace(60);
  for (size_t i = 0; i < trace.size(); ++i) {
    trace[i].at = absl::Seconds(1) * i;
    trace[i].input_tokens = 1000;
    trace[i].output_tokens = 2;
  }
  TraceSweepOptions options;
  options.run.preset = *FindCostPreset("a100x4-70b");
  options.run.pool_blocks = options.run.preset.pool_blocks;
  options.run.ttft_slo = absl::Seconds(1);
  options.policies = {PolicyKind::kRoundRobin};
  options.factors = {0.5, 2};
  const auto scale = FindSweepScale(trace, options);
  ASSERT_TRUE(scale.ok()) << scale.status();
  const CostModel cost = *CostModel::Create(options.run.preset.cost);
  const double capacity = 1 / absl::ToDoubleSeconds(cost.Prefill(1000, 0));
  EXPECT_GT(*scale, 0.7 * capacity);
  EXPECT_LT(*scale, 1.4 * capacity);
  int heard = 0;
  const auto rows = RunTraceSweep(trace, options, *scale,
                                  [&](const TraceSweepRow&) { ++heard; });
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(heard, 2);
  EXPECT_EQ((*rows)[0].scale, *scale / 2);
  EXPECT_GE((*rows)[0].report.good, 30);
  EXPECT_LT((*rows)[1].report.good, 30);
}

}  // namespace
}  // namespace penstock
