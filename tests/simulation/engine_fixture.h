#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/engine/engine_loop.h"
#include "gtest/gtest.h"
#include "tools/simulator/sim_backend.h"
#include "tools/simulator/sim_model.h"

namespace penstock {

// When a sequence's tokens came.
struct TokenTimes : SequenceListener {
  explicit TokenTimes(const Clock* clock) : clock(clock) {}
  void OnToken(const TokenDelivery& delivery) override {
    times.push_back(clock->Now());
    tokens.push_back(delivery.token.id);
  }
  void OnFailed(const absl::Status& status) override { FAIL() << status; }

  const Clock* clock;
  std::vector<Instant> times;
  std::vector<TokenId> tokens;
};

// An engine over the simulated model, which tests make on their own: the world
// around it, its sequences and their true answers.
class EngineFixture : public testing::Test {
 protected:
  ~EngineFixture() override {
    engine_.reset();
    cache_.reset();
  }

  std::unique_ptr<Sequence> Make(int prompt, int max_tokens, int salt) {
    GenerateRequest request;
    for (int i = 0; i < prompt; ++i) {
      request.prompt.push_back(1 + (i * 3 + salt) % 900);
    }
    request.stop.max_tokens = max_tokens;
    request.sampling.seed = salt;
    return std::make_unique<Sequence>(request, root_, &tokenizer_, 4096);
  }
  std::vector<TokenId> Expected(int prompt, int count, int salt) {
    return SimModel::Generate(Make(prompt, count, salt)->tokens(), count, salt);
  }

  // A new memory and pool, and no engine.
  Arena MakePool(int blocks) {
    engine_.reset();
    cache_.reset();
    memory_.assign(blocks * SimModel::Layout().block_bytes(), 0xFF);
    pool_ = std::make_unique<BlockPool>(blocks);
    cache_ = std::make_unique<PrefixCache>(pool_.get(), &hasher_, &log_);
    return {absl::MakeSpan(memory_), -1};
  }

  void Settle() {
    while (engine_->Tick()) {
    }
    pool_->CheckConservation();
  }
  // To the next instant at which something happens; false: there is none.
  bool Step() {
    if (timers_.NextDeadline() == Instant::Infinite()) return false;
    clock_.AdvanceTo(timers_.NextDeadline());
    timers_.RunDue(clock_.Now());
    return true;
  }
  void Run() {
    Settle();
    while (Step()) Settle();
  }

  ManualClock clock_;
  Timers timers_;
  BlockHasher hasher_{HashSecret("engine")};
  BlockHash root_ = hasher_.Root({ContentId(1), "", "", ""});
  SimTokenizer tokenizer_;
  CacheEventLog log_;
  std::unique_ptr<BatchPolicy> policy_ = MakeContinuousBatching();
  std::vector<uint8_t> memory_;
  std::unique_ptr<SimBackend> backend_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<EngineLoop> engine_;
};

}  // namespace penstock
