#include "router/bench/decision_bench.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "common/model/kv_layout.h"
#include "router/core/worker_registry.h"

namespace penstock {
namespace {

constexpr int kPrompts = 200;
constexpr int kOwners = 20;  // of each prompt

WorkerInfo InfoOf(int number) {
  WorkerInfo info;
  info.key = {absl::StrFormat("worker-%06d", number), Incarnation(1)};
  info.roles = {true, true};
  info.control_address = "localhost:1";
  info.content = ContentId(1);
  info.layout = LayoutId(1);
  info.numerics = NumericsId(1);
  info.context_length = 1 << 17;
  info.total_blocks = 100'000;
  info.max_sequences = 256;
  info.transports = {TransportKind::kTcp};
  return info;
}

WorkerLoad LoadOf(Random& random) {
  WorkerLoad load;
  load.health = WorkerHealth::kReady;
  load.active_requests = static_cast<int>(random.Below(100));
  load.queued_requests = static_cast<int>(random.Below(10));
  load.queued_tokens = static_cast<int>(random.Below(20'000));
  load.total_blocks = 100'000;
  load.free_blocks = 20'000 + static_cast<int>(random.Below(70'000));
  return load;
}

}  // namespace

double MeasureDecision(const DecisionBenchOptions& options,
                       const RoutingPolicy& policy, const Clock& clock) {
  SeededRandom random(1);
  ManualClock time;
  Timers timers;
  WorkerRegistry::Options registry_options;
  registry_options.content = ContentId(1);
  registry_options.max_workers = options.workers;
  WorkerRegistry registry(registry_options, time, timers,
                          [](const WorkerKey&, const absl::Status&) {});
  std::vector<WorkerKey> workers;
  for (int i = 0; i < options.workers; ++i) {
    const WorkerInfo info = InfoOf(i);
    absl::Status status = registry.Register(info);
    CHECK(status.ok()) << status;
    status = registry.Report(info.key, LoadOf(random));
    CHECK(status.ok()) << status;
    workers.push_back(info.key);
  }
  std::vector<std::vector<BlockHash>> prompts(kPrompts);
  std::vector<uint64_t> sequences(workers.size());
  for (std::vector<BlockHash>& chain : prompts) {
    for (int i = 0; i < options.prompt_blocks; ++i) {
      chain.push_back(BlockHash(random.Next() | 1));
    }
    for (int i = 0; i < kOwners; ++i) {
      const size_t owner = random.Below(workers.size());
      BlocksStored stored;
      stored.hashes.assign(chain.begin(),
                           chain.begin() + 1 + random.Below(chain.size()));
      const CacheEvent event{++sequences[owner], std::move(stored)};
      registry.ApplyEvents(workers[owner], {&event, 1});
    }
  }
  auto place = [&](const std::vector<BlockHash>& chain) {
    RequestFacts facts;
    facts.prompt_tokens = static_cast<int>(chain.size()) * kBlockTokens;
    facts.max_tokens = 256;
    facts.chain = chain;
    const auto placement = policy.Place(facts, registry.view(), random);
    CHECK(placement.ok()) << placement.status();
  };
  for (const auto& chain : prompts) place(chain);
  const Instant start = clock.Now();
  int decisions = 0;
  while (clock.Now() - start < options.time) {
    for (const auto& chain : prompts) place(chain);
    decisions += kPrompts;
  }
  return absl::ToDoubleSeconds(clock.Now() - start) / decisions;
}

}  // namespace penstock
