// How long a placement takes, by the number of workers and by who has the
// prompt. Half of the workers prefill, half decode.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/worker_registry.h"

namespace penstock {
namespace {

constexpr int kPromptBlocks = 256;

std::vector<BlockHash> Chain() {
  std::vector<BlockHash> chain;
  for (int i = 0; i < kPromptBlocks; ++i) chain.emplace_back(1000 + i);
  return chain;
}

void AddWorkers(WorkerRegistry& registry, int workers, int owners) {
  SeededRandom random(5);
  for (int i = 0; i < workers; ++i) {
    WorkerInfo info;
    info.key = {absl::StrCat("w", i), Incarnation(1)};
    info.roles = {i % 2 == 0, i % 2 == 1};
    info.control_address = "x";
    info.content = ContentId(7);
    info.total_blocks = 100000;
    info.max_sequences = 256;
    info.transports = {TransportKind::kTcp};
    CHECK(registry.Register(info).ok());
    WorkerLoad load;
    load.health = WorkerHealth::kReady;
    load.active_requests = static_cast<int>(random.Below(100));
    load.queued_tokens = static_cast<int>(random.Below(10000));
    load.total_blocks = 100000;
    load.free_blocks = static_cast<int>(random.Below(100000));
    CHECK(registry.Report(info.key, load).ok());
    if (i < owners) {
      registry.ApplyEvents(info.key, {{1, BlocksStored{BlockHash(), Chain()}}});
    }
  }
}

void BM_Place(benchmark::State& state) {
  ManualClock clock;
  Timers timers;
  WorkerRegistry registry({.content = ContentId(7), .max_workers = 20000},
                          clock, timers, [](auto&&...) {});
  AddWorkers(registry, static_cast<int>(state.range(0)),
             static_cast<int>(state.range(1)));
  const PlacementPolicy policy({.kv_bytes_per_token = 23040},
                               *CostModel::Create({}));
  const std::vector<BlockHash> chain = Chain();
  RequestFacts facts;
  facts.prompt_tokens = kPromptBlocks * 16;
  facts.max_tokens = 128;
  facts.chain = chain;
  SeededRandom random(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(policy.Place(facts, registry.view(), random));
  }
}
BENCHMARK(BM_Place)
    ->ArgNames({"workers", "owners"})
    ->Args({1000, 0})
    ->Args({1000, 4})
    ->Args({1000, 1000})
    ->Args({10000, 0})
    ->Args({10000, 4})
    ->Args({10000, 10000});

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
