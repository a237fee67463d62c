#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "gtest/gtest.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/worker_registry.h"

namespace penstock {

// A cluster of workers behind a real registry, and a policy on top.
class PolicyFixture : public ::testing::Test {
 protected:
  PolicyFixture()
      : registry_({.content = ContentId(7)}, clock_, timers_, [](auto&&...) {}),
        random_(1) {}

  WorkerInfo Info(const std::string& name, bool prefill, bool decode) {
    WorkerInfo info;
    info.key = {name, Incarnation(1)};
    info.roles = {prefill, decode};
    info.control_address = name;
    info.content = ContentId(7);
    info.layout = LayoutId(1);
    info.numerics = NumericsId(1);
    info.total_blocks = 100000;
    info.max_sequences = 1000;
    info.transports = {TransportKind::kTcp};
    return info;
  }
  void Add(const WorkerInfo& info, WorkerHealth health = WorkerHealth::kReady) {
    ASSERT_TRUE(registry_.Register(info).ok());
    WorkerLoad load;
    load.health = health;
    load.total_blocks = load.free_blocks = 100000;
    ASSERT_TRUE(registry_.Report(info.key, load).ok());
  }
  void AddPrefill(const std::string& name) { Add(Info(name, true, false)); }
  void AddDecode(const std::string& name) { Add(Info(name, false, true)); }
  void Report(const std::string& name, WorkerLoad load,
              WorkerHealth health = WorkerHealth::kReady) {
    load.health = health;
    if (load.total_blocks == 0) {
      load.total_blocks = 100000;
      load.free_blocks = 100000;
    }
    ASSERT_TRUE(registry_.Report({name, Incarnation(1)}, load).ok());
  }
  // The worker holds the first `blocks` of Chain(first).
  void Store(const std::string& name, uint64_t first, int blocks) {
    uint64_t& sequence = sequences_[name];
    registry_.ApplyEvents(
        {name, Incarnation(1)},
        {{++sequence, BlocksStored{BlockHash(), Chain(first, blocks)}}});
  }
  static std::vector<BlockHash> Chain(uint64_t first, int blocks) {
    std::vector<BlockHash> chain;
    for (int i = 0; i < blocks; ++i) chain.push_back(BlockHash(first + i));
    return chain;
  }

  absl::StatusOr<Placement> Place(int prompt_tokens, uint64_t first = 900000,
                                  int max_tokens = 64) {
    std::vector<BlockHash> chain = Chain(first, prompt_tokens / kBlockTokens);
    RequestFacts facts;
    facts.session = session_;
    facts.prompt_tokens = prompt_tokens;
    facts.max_tokens = max_tokens;
    facts.chain = chain;
    facts.kept = kept_;
    facts.avoid = avoid_;
    return PlacementPolicy(options_, *CostModel::Create(costs_))
        .Place(facts, registry_.view(), random_);
  }
  // Places and keeps the load on the workers, as the router does.
  Placement PlaceAndHold(int prompt_tokens, uint64_t first = 900000,
                         int max_tokens = 64) {
    Placement placement = *Place(prompt_tokens, first, max_tokens);
    Hold(LegKind::kDecode, placement.decode);
    if (placement.prefill.has_value()) {
      Hold(LegKind::kPrefill, *placement.prefill);
    }
    return placement;
  }
  void Hold(LegKind kind, const LegPlacement& leg) {
    held_.push_back(registry_.Reserve(leg.worker, leg.load));
    registry_.NotePlaced(kind, session_, leg.worker);
  }

  static std::string PrefillOf(const absl::StatusOr<Placement>& placement) {
    return placement->prefill.has_value() ? placement->prefill->worker.name
                                          : "(decode)";
  }

  ManualClock clock_;
  Timers timers_;
  WorkerRegistry registry_;
  SeededRandom random_;
  PolicyOptions options_ = {.kv_bytes_per_token = 23040};
  CostCoefficients costs_;
  std::map<std::string, uint64_t> sequences_;
  uint64_t session_ = 0;
  std::vector<KeptPrefix> kept_;
  std::vector<std::string> avoid_;
  std::vector<LoadReservation> held_;
};

}  // namespace penstock
