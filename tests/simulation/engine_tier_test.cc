// What the engine does with a tier below its pool.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/engine_fixture.h"
#include "tools/simulator/sim_tier.h"

namespace penstock {
namespace {

struct Output : SequenceListener {
  void OnToken(const TokenDelivery& delivery) override {
    tokens.push_back(delivery.token.id);
    done |= delivery.finish != FinishReason::kNone;
  }
  void OnFailed(const absl::Status& status) override { failed = status; }
  std::vector<TokenId> tokens;
  bool done = false;
  absl::Status failed;
};

struct CountingProbe : EngineProbe {
  void TierLooked(int wanted, int held, int fetched) override {
    looked_for += wanted;
  }
  void PageFetched(uint64_t bytes) override { ++fetched; }
  void PageNotFetched(absl::StatusCode why) override {
    not_fetched.push_back(why);
  }
  void PageStored(uint64_t bytes) override { ++stored; }
  void PageNotStored(absl::StatusCode why) override { ++not_stored; }
  void Preempted() override { ++preempted; }
  int looked_for = 0, fetched = 0, stored = 0, not_stored = 0, preempted = 0;
  std::vector<absl::StatusCode> not_fetched;
};

// One engine process after another, over one tier.
class EngineTierTest : public EngineFixture {
 protected:
  // A new process: its pool is empty. 1 ms for each row.
  void Start(SimTierOptions tier, int blocks = 64, EngineOptions engine = {}) {
    Stop();
    SimBackend::Options backend;
    backend.step_cost = absl::ZeroDuration();
    backend.row_cost = absl::Milliseconds(1);
    engine.cost.prefill_fixed = absl::ZeroDuration();
    engine.cost.prefill_token = backend.row_cost;
    engine.cost.prefill_pair = absl::ZeroDuration();
    const Arena arena = MakePool(blocks);
    backend_ =
        std::make_unique<SimBackend>(backend, arena, &clock_, &timers_, [] {});
    if (tier.pages == 0) tier.pages = 1000;
    SimTier::Ports ports;
    ports.held = &pages_;
    ports.clock = &clock_;
    ports.timers = &timers_;
    ports.on_write = [this](BlockIndex block) { backend_->Touched(block); };
    tier_ = std::make_unique<SimTier>(
        tier,
        TierWorker{{backend_->kv_layout().id(), ContentId(1), NumericsId(1)},
                   ArenaPages(arena, backend_->kv_layout()),
                   hasher_,
                   [] {}},
        7, ports);
    EngineLoop::Ports engine_ports{backend_.get(), pool_.get(), cache_.get(),
                                   policy_.get(),  &hasher_,    &clock_,
                                   &probe_};
    engine_ports.tier = tier_.get();
    engine_ports.timers = &timers_;
    engine_ = std::make_unique<EngineLoop>(engine, engine_ports);
  }
  void Stop() {
    engine_.reset();
    tier_.reset();
    backend_.reset();
    cache_.reset();
    pool_.reset();
    probe_ = {};
  }
  ~EngineTierTest() override { Stop(); }

  SequenceId Add(Output& output, int prompt, int max_tokens, int salt) {
    auto id = engine_->Add(Make(prompt, max_tokens, salt), &output);
    EXPECT_TRUE(id.ok());
    return *id;
  }

  template <typename Done>
  void RunUntil(Done done) {
    Settle();
    while (!done() && Step()) Settle();
    ASSERT_TRUE(done());
  }
  // Puts a prompt's pages into the tier.
  void Remember(int prompt, int salt) {
    Start({});
    Output output;
    engine_->Remove([&] {
      const SequenceId id = Add(output, prompt, 1, salt);
      Run();
      return id;
    }());
    Run();
    ASSERT_EQ(output.tokens, Expected(prompt, 1, salt));
  }

  CountingProbe probe_;
  SimTierPages pages_;
  std::unique_ptr<SimTier> tier_;
};

TEST_F(EngineTierTest, ANewProcessGoesOnFromThePagesOfTheLast) {
  Remember(330, 5);
  EXPECT_EQ(pages_.size(), 20u);
  Start({});
  Output output;
  const SequenceId id = Add(output, 330, 6, 5);
  Run();
  EXPECT_EQ(output.tokens, Expected(330, 6, 5));
  EXPECT_EQ(probe_.fetched, 20);
  EXPECT_EQ(backend_->rows_computed(), 10 + 5);
  EXPECT_EQ(engine_->Find(id)->cached_tokens, 320);
  // They are in the prefix cache, and routers are told.
  EXPECT_GE(cache_->size(), 20);
  EXPECT_EQ(engine_->Find(id)->prompt_computed_here, 10);
}

TEST_F(EngineTierTest, WaitsForATierThatHasToAsk) {
  Remember(330, 5);
  SimTierOptions asks;
  asks.asks = true;
  asks.wait = absl::Milliseconds(2);
  Start(asks);
  Output output;
  Add(output, 330, 2, 5);
  Run();
  EXPECT_EQ(output.tokens, Expected(330, 2, 5));
  EXPECT_GT(probe_.fetched, 0);
  // Not for long.
  asks.wait = absl::Seconds(5);
  Start(asks);
  Output computed;
  Add(computed, 330, 2, 5);
  Run();
  EXPECT_EQ(computed.tokens, Expected(330, 2, 5));
  EXPECT_EQ(probe_.fetched, 0);
}

TEST_F(EngineTierTest, BadPagesAreComputed) {
  for (int fault = 0; fault < 4; ++fault) {
    Remember(330, 5);
    SimTierOptions bad;
    (fault == 0   ? bad.corrupt
     : fault == 1 ? bad.confused
     : fault == 2 ? bad.missing
                  : bad.fails) = fault == 3 ? 0.5 : 1;
    Start(bad);
    Output output;
    Add(output, 330, 6, 5);
    Run();
    EXPECT_EQ(output.tokens, Expected(330, 6, 5)) << fault;
    EXPECT_GT(probe_.not_fetched.size(), 0u) << fault;
    if (fault < 3) {
      // The last page that is left cannot be confused with another.
      EXPECT_LE(probe_.fetched, fault == 1 ? 1 : 0) << fault;
      EXPECT_EQ(backend_->rows_computed(), 335 - 16 * probe_.fetched) << fault;
    }
    if (fault < 2) {
      EXPECT_THAT(probe_.not_fetched,
                  testing::Each(absl::StatusCode::kDataLoss));
    }
  }
}

TEST_F(EngineTierTest, OneThatFetchesHoldsUpNobody) {
  Remember(330, 5);
  SimTierOptions slow;
  slow.each = absl::Milliseconds(10);
  slow.foresight = 0.01;
  Start(slow);
  Output fetches, computes;
  Add(fetches, 330, 2, 5);
  Add(computes, 20, 4, 900);
  RunUntil([&] { return computes.done; });
  EXPECT_TRUE(fetches.tokens.empty());
  Run();
  EXPECT_EQ(computes.tokens, Expected(20, 4, 900));
  EXPECT_EQ(fetches.tokens, Expected(330, 2, 5));
}

TEST_F(EngineTierTest, ComputesTheFrontWhileASlowTierBringsTheRear) {
  Remember(330, 5);
  SimTierOptions slow;
  slow.each = absl::Milliseconds(16);  // as long as computing takes
  Start(slow);
  const Instant began = clock_.Now();
  Output output;
  Add(output, 330, 1, 5);
  RunUntil([&] { return output.done; });
  EXPECT_EQ(output.tokens, Expected(330, 1, 5));
  ASSERT_GT(probe_.fetched, 3);
  EXPECT_LT(backend_->rows_computed(), 330);
  // What came up in the meantime cost no time.
  EXPECT_LT(clock_.Now() - began,
            absl::Milliseconds(330 - 16 * probe_.fetched + 40));
}

TEST_F(EngineTierTest, GivesUpOnPagesThatAreLate) {
  Remember(330, 5);
  SimTierOptions late;
  late.late = 1;
  late.lateness = absl::Seconds(30);
  Start(late);
  Output output;
  const SequenceId id = Add(output, 330, 2, 5);
  const Instant began = clock_.Now();
  RunUntil([&] { return output.done; });
  EXPECT_EQ(output.tokens, Expected(330, 2, 5));
  EXPECT_THAT(probe_.not_fetched,
              testing::Each(absl::StatusCode::kDeadlineExceeded));
  EXPECT_GT(probe_.not_fetched.size(), 0u);
  EXPECT_LT(clock_.Now() - began, absl::Seconds(5));
  EXPECT_EQ(backend_->rows_computed(), 331);
  // The tier may write into them still, so nobody else gets them.
  engine_->Remove(id);
  Settle();
  EXPECT_GT(pool_->counts().in_transfer, 0);
  EXPECT_TRUE(engine_->busy());
  // Meanwhile nothing more is asked of it.
  Output next;
  const int looked_for = probe_.looked_for;
  engine_->Remove(Add(next, 330, 2, 77));
  Settle();
  EXPECT_EQ(probe_.looked_for, looked_for);
  Run();
  EXPECT_EQ(pool_->counts().in_transfer, 0);
  EXPECT_FALSE(engine_->busy());
}

TEST_F(EngineTierTest, BlocksOfOneThatLeftStayUntilTheTierHasLetGo) {
  Remember(330, 5);
  SimTierOptions slow;
  slow.each = absl::Milliseconds(10);
  slow.foresight = 0.01;
  Start(slow);
  Output output;
  const SequenceId id = Add(output, 330, 2, 5);
  Settle();
  EXPECT_GT(pool_->counts().in_transfer, 3);
  auto sequence = engine_->Remove(id);
  EXPECT_EQ(sequence->computed, 0);
  sequence.reset();
  Settle();
  EXPECT_GT(pool_->counts().in_transfer, 0);
  Run();
  EXPECT_EQ(pool_->counts().in_transfer, 0);
  EXPECT_TRUE(output.tokens.empty());
  EXPECT_EQ(pool_->counts().active, 0);
}

TEST_F(EngineTierTest, OneThatFetchesGivesWayToAnOlderOne) {
  Remember(330, 5);
  SimTierOptions slow;
  slow.each = absl::Milliseconds(40);
  slow.foresight = 0.01;
  Start(slow, 30);
  Output grows, fetches;
  Add(grows, 20, 300, 900);
  RunUntil([&] { return grows.tokens.size() > 40; });
  Add(fetches, 330, 2, 5);
  RunUntil([&] { return probe_.preempted > 0; });
  EXPECT_TRUE(fetches.tokens.empty());
  RunUntil([&] { return grows.done; });
  EXPECT_EQ(grows.tokens, Expected(20, 300, 900));
}

TEST_F(EngineTierTest, APreemptedSequenceForgetsThePagesThatCame) {
  Remember(330, 5);
  SimTierOptions slow;
  slow.each = absl::Milliseconds(16);  // as long as computing takes
  EngineOptions engine;
  engine.prefill_chunk = kBlockTokens;
  engine.watermark_blocks = 0;
  // Two that need their eleventh blocks in the same step, when one is left.
  Start(slow, 2 * 10 + 21, engine);
  Output grows[2], fetches;
  std::vector<SequenceId> older;
  for (int i : {0, 1}) older.push_back(Add(grows[i], 20, 200, 900 + 50 * i));
  RunUntil([&] { return grows[1].tokens.size() > 134; });
  Add(fetches, 330, 2, 5);
  RunUntil([&] { return probe_.preempted > 0; });
  // It had not computed up to the pages that came, nor is it given them again.
  ASSERT_GT(probe_.fetched, 0);
  pages_ = {};
  RunUntil([&] { return grows[0].done && grows[1].done; });
  for (SequenceId id : older) engine_->Remove(id);
  Run();
  EXPECT_EQ(fetches.tokens, Expected(330, 2, 5));
}

TEST_F(EngineTierTest, PagesOnTheirWayDownAreFewAndInNobodysWay) {
  SimTierOptions slow;
  slow.each = absl::Seconds(1);
  EngineOptions engine;
  engine.max_tier_stores = 3;
  Start(slow, 24, engine);
  Output first;
  const SequenceId id = Add(first, 330, 1, 5);
  RunUntil([&] { return first.done; });
  engine_->Remove(id);
  Settle();
  EXPECT_EQ(pool_->counts().in_transfer, 3);
  EXPECT_EQ(pool_->counts().cached, 17);
  // Needs what is cached, but not what is on its way.
  Output second;
  Add(second, 250, 1, 800);
  const Instant began = clock_.Now();
  RunUntil([&] { return second.done; });
  EXPECT_LT(clock_.Now() - began, absl::Milliseconds(500));
  EXPECT_EQ(second.tokens, Expected(250, 1, 800));
}

TEST_F(EngineTierTest, WhatWasStoredIsFetchedAfterItWasEvicted) {
  Start({}, 24);
  for (int round = 0; round < 3; ++round) {
    for (int salt : {5, 800}) {
      Output output;
      const SequenceId id = Add(output, 330, 3, salt);
      Run();
      EXPECT_EQ(output.tokens, Expected(330, 3, salt)) << round << " " << salt;
      engine_->Remove(id);
      Run();
    }
  }
  EXPECT_GT(probe_.fetched, 0);
}

}  // namespace
}  // namespace penstock
