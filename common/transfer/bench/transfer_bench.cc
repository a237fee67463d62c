// Prints what each transport moves between two arenas on this machine, with
// the layout of SmolLM2-135M: 30 layers of 12 KiB a block.

#include <cstdio>

#include "common/transfer/bench/measure_transfer.h"

int main() {
  using namespace penstock;
  TransferBench bench;
  bench.layout.layers = 30;
  bench.layout.kv_heads = 3;
  bench.layout.head_dim = 64;
  bench.layout.value_dim = 64;
  std::printf("%-8s %12s %16s\n", "kind", "GB/s", "one layer, us");
  for (TransportKind kind :
       {TransportKind::kInproc, TransportKind::kShm, TransportKind::kTcp}) {
    bench.kind = kind;
    auto figures = MeasureTransfer(bench);
    if (!figures.ok()) {
      std::fprintf(stderr, "%s: %s\n", TransportName(kind),
                   figures.status().ToString().c_str());
      return 1;
    }
    std::printf("%-8s %12.2f %16.1f\n", TransportName(kind),
                figures->bytes_per_second / 1e9,
                absl::ToDoubleMicroseconds(figures->median_latency));
  }
  return 0;
}
