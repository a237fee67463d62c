#include "tools/simulator/trace/trace_run.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "tools/simulator/trace/trace_report.h"

namespace penstock {
namespace {

// The first `requests` of the recorded slice.
std::vector<TraceRequest> Slice(size_t requests) {
  auto trace = ReadTraceFile(PENSTOCK_TEST_DATA
                             "/traces/mooncake_conversation_100.jsonl");
  EXPECT_TRUE(trace.ok()) << trace.status();
  trace->resize(requests);
  return *std::move(trace);
}

TraceRunOptions Options(absl::string_view preset) {
  TraceRunOptions options;
  options.preset = *FindCostPreset(preset);
  options.pool_blocks = options.preset.pool_blocks;
  return options;
}

// Runs and blocks of prompts, and those that any earlier prompt began with too.
struct Hits {
  int64_t runs = 0, cached_runs = 0, blocks = 0, cached_blocks = 0;
};

Hits IdealHits(const std::vector<TraceRequest>& trace) {
  Hits hits;
  std::set<uint64_t> seen;
  for (const TraceRequest& r : trace) {
    int64_t known = 0;
    for (uint64_t id : r.hashes) {
      if (!seen.contains(id)) break;
      ++known;
    }
    seen.insert(r.hashes.begin(), r.hashes.end());
    // The last token is computed whatever is cached.
    const int64_t reusable = (r.input_tokens - 1) / 16;
    hits.runs += static_cast<int64_t>(r.hashes.size());
    hits.cached_runs += std::min(known, reusable / 32);
    hits.blocks += r.input_tokens / 16;
    hits.cached_blocks += std::min(known * 32, reusable);
  }
  return hits;
}

TEST(TraceRunTest, AnUnlimitedCacheHitsAllThatWasSeenBefore) {
  const std::vector<TraceRequest> trace = Slice(60);
  TraceRunOptions options = Options("instant");
  options.pool_blocks = 0;
  options.concurrency = 1;
  const auto report = RunTrace(trace, options);
  ASSERT_TRUE(report.ok()) << report.status();
  const Hits ideal = IdealHits(trace);
  ASSERT_GT(ideal.cached_runs, 0);
  EXPECT_EQ(report->finished, 60);
  EXPECT_EQ(report->runs, ideal.runs);
  EXPECT_EQ(report->cached_runs, ideal.cached_runs);
  EXPECT_EQ(report->blocks, ideal.blocks);
  EXPECT_EQ(report->cached_blocks, ideal.cached_blocks);
}

TEST(TraceRunTest, ALoopSharesNothingWithTheOneBefore) {
  const std::vector<TraceRequest> trace = Slice(20);
  TraceRunOptions options = Options("instant");
  options.pool_blocks = 0;
  options.concurrency = 1;
  options.requests = 40;
  const auto report = RunTrace(trace, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->finished, 40);
  EXPECT_EQ(report->cached_blocks, 2 * IdealHits(trace).cached_blocks);
}

TEST(TraceRunTest, EqualRunsHaveEqualReports) {
  const std::vector<TraceRequest> trace = Slice(30);
  TraceRunOptions options = Options("a100x4-70b");
  options.prefill_workers = 6;
  options.decode_workers = 2;
  options.requests = 40;
  auto json = [&] {
    const auto report = RunTrace(trace, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return TraceReportJson(*report, {}).dump();
  };
  const std::string first = json();
  EXPECT_EQ(json(), first);
  options.seed = 2;
  EXPECT_NE(json(), first);
}

TEST(TraceRunTest, ALoneRequestTakesWhatItsPartsTake) {
  TraceRequest request;
  request.input_tokens = 100;
  request.output_tokens = 11;
  const TraceRunOptions options = Options("a100x4-70b");
  const auto report = RunTrace({request}, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->output_tokens, 11);
  EXPECT_EQ(report->prompt_tokens, 100);
  const CostModel cost = *CostModel::Create(options.preset.cost);
  // Messages and orders on the way there and back: some tenths of a
  // millisecond each.
  const absl::Duration messages = absl::Milliseconds(2);
  const absl::Duration prefill = cost.Prefill(100, 0);
  EXPECT_GE(report->ttft.max(), prefill);
  EXPECT_LE(report->ttft.max(), prefill + messages);
  // Contexts of 101 to 110 tokens; the first gap has the transfer in it.
  absl::Duration decode;
  for (int context = 101; context <= 110; ++context) {
    decode += cost.DecodeStep(1, context);
  }
  const uint64_t bytes = 7 * 16 * (320 << 10);
  const absl::Duration rest = report->e2e.max() - report->ttft.max();
  EXPECT_GE(rest, decode);
  EXPECT_LE(rest, decode + cost.Transfer(bytes) + messages);
  EXPECT_EQ(report->bytes_moved, bytes);
  EXPECT_EQ(report->good, 1);
}

TEST(TraceRunTest, WhatCannotBeServedIsCountedByItsError) {
  TraceRequest small, large;
  large.input_tokens = 1000;
  TraceRunOptions options = Options("small-cpu");
  options.pool_blocks = 10;
  const auto report = RunTrace({small, large}, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->finished, 1);
  EXPECT_EQ(report->failures,
            (std::map<std::string, int64_t>{{"refused KV_TOO_SMALL", 1}}));
}

TEST(TraceRunTest, RefusesWhatNoMachineHolds) {
  const std::vector<TraceRequest> trace(1);
  TraceRunOptions options = Options("small-cpu");
  options.prefill_workers = 1000;
  options.pool_blocks = 1 << 28;
  EXPECT_FALSE(RunTrace(trace, options).ok());
  options.pool_blocks = 64;
  EXPECT_TRUE(RunTrace(trace, options).ok());
  options.prefill_workers = 0;
  EXPECT_FALSE(RunTrace(trace, options).ok());
  options.prefill_workers = 1;
  options.arrival_scale = 0;
  EXPECT_FALSE(RunTrace(trace, options).ok());
}

}  // namespace
}  // namespace penstock
