#include "router/bench/index_bench.h"

#include <string>

#include "common/env/clock.h"
#include "gtest/gtest.h"
#include "router/bench/contested_index.h"

namespace penstock {
namespace {

// A clock that goes on by itself, so that every measurement ends.
class SteppingClock : public Clock {
 public:
  Instant Now() const override {
    steps_ += 1'000'000;
    return Instant::FromNanos(steps_);
  }

 private:
  mutable int64_t steps_ = 0;
};

// The bench aborts where indices disagree: all three, on every kind of event.
TEST(IndexBenchTest, MeasuresIndicesThatAgree) {
  IndexWorkload::Options options;
  options.workers = 20;
  options.blocks = 2000;
  options.prompt_blocks = 24;
  options.head_blocks = 8;
  options.heads = 4;
  options.with_tokens = 10;
  options.event_blocks = 5;
  const IndexWorkload workload(options);
  SteppingClock clock;
  IndexBench bench(workload, clock, absl::Microseconds(100));
  for (auto make : {MakeRunIndex, MakeVectorIndex, MakeSetIndex}) {
    bench.Measure(make);
  }
  ASSERT_FALSE(bench.rows().empty());
  for (const BenchRow& row : bench.rows()) {
    EXPECT_EQ(row.of.size(), 3u) << row.what;
  }
}

TEST(IndexWorkloadTest, HasTheBlocksThatWereAskedFor) {
  IndexWorkload::Options options;
  options.workers = 10;
  options.blocks = 1000;
  options.prompt_blocks = 20;
  options.head_blocks = 10;
  options.heads = 2;
  const IndexWorkload workload(options);
  const auto index = MakeVectorIndex();
  for (const auto& event : workload.fill()) {
    index->Apply(event.worker, event.event);
  }
  EXPECT_EQ(index->blocks(), 1000u);
  const size_t before = index->blocks();
  for (const auto& event : workload.churn()) {
    index->Apply(event.worker, event.event);
  }
  EXPECT_EQ(index->blocks(), before);
}

}  // namespace
}  // namespace penstock
