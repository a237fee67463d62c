#include "common/transfer/bench/measure_transfer.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(MeasureTransferTest, MovesWhatItSays) {
  for (TransportKind kind :
       {TransportKind::kInproc, TransportKind::kShm, TransportKind::kTcp}) {
    TransferBench bench;
    bench.kind = kind;
    bench.layout.layers = 2;
    bench.layout.kv_heads = 1;
    bench.layout.head_dim = 8;
    bench.layout.value_dim = 8;
    bench.blocks = 3;
    bench.repeats = 5;
    bench.pings = 2;
    auto figures = MeasureTransfer(bench);
    ASSERT_TRUE(figures.ok()) << figures.status();
    // 5 posts of 3 blocks of 2 layers of 512 bytes.
    EXPECT_EQ(figures->bytes, 5u * 3 * 2 * 512);
    EXPECT_GT(figures->bytes_per_second, 0);
    EXPECT_GT(figures->median_latency, absl::ZeroDuration());
  }
}

TEST(MeasureTransferTest, RefusesNothingToMeasure) {
  TransferBench bench;
  bench.blocks = 0;
  EXPECT_EQ(MeasureTransfer(bench).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
