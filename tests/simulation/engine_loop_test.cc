#include "common/engine/engine_loop.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/engine_fixture.h"

namespace penstock {
namespace {

struct Output : SequenceListener {
  void OnComputed(int computed) override { progress.push_back(computed); }
  void OnToken(const TokenDelivery& delivery) override {
    tokens.push_back(delivery.token.id);
    finish = delivery.finish;
  }
  void OnDrawn(SequenceId id, absl::Span<const SampledToken> all) override {
    for (const SampledToken& token : all) drawn.push_back(token.token);
  }
  void OnFailed(const absl::Status& status) override { failed = status; }
  std::vector<TokenId> drawn;
  std::vector<int> progress;
  std::vector<TokenId> tokens;
  FinishReason finish = FinishReason::kNone;
  absl::Status failed;
};

// Sees each plan on its way to the simulated backend.
class WatchedBackend : public Backend {
 public:
  explicit WatchedBackend(Backend* backend) : backend_(backend) {}
  const BackendCaps& caps() const override { return backend_->caps(); }
  const KvLayout& kv_layout() const override { return backend_->kv_layout(); }
  void Submit(StepPlan plan) override {
    plans.push_back(plan);
    backend_->Submit(std::move(plan));
  }
  std::optional<BackendEvent> Poll() override {
    std::optional<BackendEvent> event = backend_->Poll();
    if (event.has_value() && std::holds_alternative<StepResult>(*event)) {
      StepResult& result = std::get<StepResult>(*event);
      if (!computing.ok()) result.status = computing;
      for (SampledToken& token : result.sampled) token.status = drawing;
    }
    return event;
  }
  std::vector<StepPlan> plans;
  absl::Status computing, drawing;  // how every step and every draw ends

 private:
  Backend* backend_;
};

// Adds up what telemetry hears.
struct CountingProbe : EngineProbe {
  void StepFinished(int prefill, int decode, absl::Duration took) override {
    ++steps;
    prefill_rows += prefill;
    decode_rows += decode;
    busy += took;
  }
  void SequenceQueued(absl::Duration waited) override {
    waits.push_back(waited);
  }
  void PrefixLooked(int prompt_tokens, int cached_tokens) override {
    looked.emplace_back(prompt_tokens, cached_tokens);
  }
  void TokenMade() override { ++tokens; }
  void Preempted() override { ++preempted; }
  void BlocksCopied(int count) override { copied += count; }
  int steps = 0, prefill_rows = 0, decode_rows = 0;
  int tokens = 0, preempted = 0, copied = 0;
  absl::Duration busy;
  std::vector<absl::Duration> waits;
  std::vector<std::pair<int, int>> looked;
};

class EngineLoopTest : public EngineFixture {
 protected:
  void Start(EngineOptions options, int blocks = 64) {
    backend_ = std::make_unique<SimBackend>(
        SimBackend::Options{}, MakePool(blocks), &clock_, &timers_, [] {});
    watched_ = std::make_unique<WatchedBackend>(backend_.get());
    engine_ = std::make_unique<EngineLoop>(
        options, EngineLoop::Ports{watched_.get(), pool_.get(), cache_.get(),
                                   policy_.get(), &hasher_, &clock_, &probe_});
  }
  // To the next event's end.
  void StepOnce() {
    while (engine_->Tick()) {
    }
    clock_.AdvanceTo(timers_.NextDeadline());
    timers_.RunDue(clock_.Now());
    while (engine_->Tick()) {
    }
  }

  Timers lease_timers_;
  CountingProbe probe_;
  std::unique_ptr<WatchedBackend> watched_;
};

TEST_F(EngineLoopTest, ChunksThePromptAndMixesItWithDecodes) {
  Start({.max_rows = 48, .prefill_chunk = 32});
  Output short_one, long_one;
  ASSERT_TRUE(engine_->Add(Make(10, 12, 1), &short_one).ok());
  ASSERT_TRUE(engine_->Add(Make(200, 3, 2), &long_one).ok());
  Run();
  EXPECT_EQ(short_one.tokens, Expected(10, 12, 1));
  EXPECT_EQ(long_one.tokens, Expected(200, 3, 2));
  int mixed = 0;
  for (const StepPlan& plan : watched_->plans) {
    EXPECT_LE(plan.tokens.size(), 48u);
    int decodes = 0, chunks = 0;
    for (const SequenceRows& rows : plan.sequences) {
      EXPECT_LE(rows.rows, 32);
      ++(rows.rows == 1 ? decodes : chunks);
    }
    mixed += decodes > 0 && chunks > 0;
  }
  EXPECT_GE(mixed, 4);
  EXPECT_THAT(long_one.progress, testing::Contains(32));
}

TEST_F(EngineLoopTest, APromptSeenBeforeIsNotComputedAgain) {
  Start({});
  Output first, second;
  SequenceId id = *engine_->Add(Make(100, 4, 7), &first);
  Run();
  engine_->Remove(id);
  int64_t before = backend_->rows_computed();
  ASSERT_TRUE(engine_->Add(Make(100, 4, 7), &second).ok());
  Run();
  EXPECT_EQ(second.tokens, first.tokens);
  // Four tail tokens of the prompt and three fed back.
  EXPECT_EQ(backend_->rows_computed() - before, 7);
}

// A block that is only kept is room to be had. Whoever takes it over leaves as
// much less of that for itself.
TEST_F(EngineLoopTest, KeptBlocksAreCountedOnce) {
  Start({}, 8);
  KeptKv kept(absl::Seconds(10), &clock_, &lease_timers_);
  engine_ = std::make_unique<EngineLoop>(
      EngineOptions{},
      EngineLoop::Ports{watched_.get(), pool_.get(), cache_.get(),
                        policy_.get(), &hasher_, &clock_, &probe_, &kept});
  Output first, busy, second;
  const SequenceId id = *engine_->Add(Make(64, 2, 7), &first);
  Run();
  std::unique_ptr<Sequence> done = engine_->Remove(id);
  const std::vector<TokenId> prompt = done->request().prompt;
  done->blocks.resize(4);
  kept.Keep(RequestId(1), {prompt, std::move(done->blocks), 64});
  ASSERT_TRUE(engine_->Add(Make(50, 10, 9), &busy).ok());
  engine_->Tick();
  EXPECT_EQ(pool_->kept(), 4);
  EXPECT_EQ(pool_->free(), 0);
  // It has use for three of the kept blocks and needs two more. Those are not
  // there before the other one has ended.
  ASSERT_TRUE(engine_->Add(Make(64, 10, 7), &second).ok());
  while (busy.finish == FinishReason::kNone) {
    EXPECT_TRUE(second.progress.empty());
    StepOnce();
  }
  engine_->Remove(SequenceId(2)).reset();
  Run();
  EXPECT_EQ(second.tokens, Expected(64, 10, 7));
  EXPECT_EQ(probe_.preempted, 0);
  engine_.reset();
}

TEST_F(EngineLoopTest, TheQueueIsBounded) {
  Start({.max_waiting = 2});
  std::vector<Output> outputs(3);
  EXPECT_TRUE(engine_->Add(Make(10, 2, 1), &outputs[0]).ok());
  EXPECT_TRUE(engine_->Add(Make(10, 2, 2), &outputs[1]).ok());
  auto third = engine_->Add(Make(10, 2, 3), &outputs[2]);
  EXPECT_EQ(ErrorInfoOf(third.status()).reason, ErrorReason::kQueueFull);
  Run();
  EXPECT_EQ(outputs[1].tokens.size(), 2u);
}

TEST_F(EngineLoopTest, RemovingMidStepKeepsItsBlocksUntilTheStepEnds) {
  Start({});
  Output output;
  SequenceId id = *engine_->Add(Make(40, 5, 1), &output);
  engine_->Tick();  // submits
  engine_->Remove(id).reset();
  EXPECT_GT(pool_->counts().active, 0);
  EXPECT_TRUE(engine_->busy());
  Run();
  EXPECT_EQ(pool_->counts().active, 0);
  EXPECT_FALSE(engine_->busy());
  EXPECT_TRUE(output.tokens.empty());
}

TEST_F(EngineLoopTest, AHeldSequenceParksWithItsBlocks) {
  Start({});
  Output output;
  SequenceId id =
      *engine_->Add(Make(40, 50, 1), &output, {AfterDraw::kHold, SequenceId()});
  Run();
  EXPECT_EQ(output.drawn, Expected(40, 1, 1));
  EXPECT_EQ(engine_->Find(id)->computed, 40);
  EXPECT_EQ(pool_->counts().active, 3);
}

// Two sequences over one partly filled block: the second to write copies it.
TEST_F(EngineLoopTest, ASharedPartialBlockIsCopiedBeforeItIsWritten) {
  Start({});
  Output one, two, three;
  SequenceId id =
      *engine_->Add(Make(40, 6, 1), &one, {AfterDraw::kHold, SequenceId()});
  Run();
  // The prompt's blocks are held by three now, then by two.
  for (Output* output : {&two, &three}) {
    auto fork = engine_->Find(id)->Fork(0);
    fork->Append({one.drawn[0], {}});
    ASSERT_TRUE(engine_->Add(std::move(fork), output, {}).ok());
  }
  EXPECT_EQ(pool_->counts().active, 3);
  engine_->Remove(id).reset();
  Run();
  std::vector<TokenId> expected = Expected(40, 6, 1);
  expected.erase(expected.begin());
  EXPECT_EQ(two.tokens, expected);
  EXPECT_EQ(three.tokens, expected);
  // The last to write does so in place.
  int copies = 0;
  for (const StepPlan& plan : watched_->plans) copies += plan.copies.size();
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(probe_.copied, 1);
}

TEST_F(EngineLoopTest, HigherPriorityIsServedFirst) {
  Start({.max_sequences = 1});
  Output low, high;
  auto urgent = Make(10, 1, 2);
  ASSERT_TRUE(engine_->Add(Make(10, 1, 1), &low).ok());
  GenerateRequest request = urgent->request();
  request.priority = 5;
  ASSERT_TRUE(
      engine_
          ->Add(std::make_unique<Sequence>(request, root_, &tokenizer_, 4096),
                &high)
          .ok());
  engine_->Tick();
  ASSERT_EQ(watched_->plans.size(), 1u);
  EXPECT_EQ(watched_->plans[0].tokens[0], request.prompt[0]);
}

TEST_F(EngineLoopTest, MemoryForOneRequestServesManyInTurn) {
  Start({}, 5);
  std::vector<Output> outputs(6);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(*engine_->Add(Make(30, 20, i), &outputs[i]));
  }
  // Finished sequences are parked until they are removed.
  for (int round = 0; round < 200; ++round) {
    Run();
    for (int i = 0; i < 6; ++i) {
      if (outputs[i].finish != FinishReason::kNone) engine_->Remove(ids[i]);
    }
    if (!engine_->busy()) break;
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(outputs[i].tokens, Expected(30, 20, i)) << i;
  }
  EXPECT_GT(probe_.preempted, 0);
}

// Whoever added it decides what becomes of it; it computes nothing meanwhile.
TEST_F(EngineLoopTest, ADrawThatFailsParksItsSequence) {
  Start({});
  watched_->drawing = absl::InvalidArgumentError("nothing is allowed");
  Output output;
  SequenceId id = *engine_->Add(Make(40, 5, 1), &output);
  Run();
  EXPECT_EQ(ErrorInfoOf(output.failed).reason, ErrorReason::kInvalidField);
  EXPECT_EQ(ErrorInfoOf(output.failed).field, "sampling.allowed_tokens");
  EXPECT_TRUE(output.tokens.empty());
  EXPECT_EQ(watched_->plans.size(), 1u);
  EXPECT_EQ(probe_.tokens, 0);
  EXPECT_EQ(engine_->Find(id)->generated(), 0);
  engine_->Remove(id).reset();
  EXPECT_FALSE(engine_->busy());
  EXPECT_EQ(pool_->counts().active, 0);
}

TEST_F(EngineLoopTest, AStepThatFailsParksItsSequences) {
  Start({});
  watched_->computing = absl::InternalError("the device is gone");
  Output one, two;
  ASSERT_TRUE(engine_->Add(Make(40, 5, 1), &one).ok());
  ASSERT_TRUE(engine_->Add(Make(30, 5, 2), &two).ok());
  Run();
  for (const Output* output : {&one, &two}) {
    EXPECT_EQ(ErrorInfoOf(output->failed).reason, ErrorReason::kInternal);
    EXPECT_EQ(output->failed.message(), "the device is gone");
    EXPECT_TRUE(output->tokens.empty());
  }
  EXPECT_EQ(watched_->plans.size(), 1u);
}

// Some memory is left for what runs, but none where nothing else does.
TEST_F(EngineLoopTest, AReserveIsLeftUnlessNothingElseRuns) {
  Start({.watermark_blocks = 2}, 8);
  EXPECT_TRUE(engine_->TryReserve(8, 0).has_value());
  EXPECT_EQ(pool_->free(), 8);
  const auto held = *pool_->TryAllocate(3);
  EXPECT_TRUE(engine_->TryReserve(5, 3).has_value()) << "all is the asker's";
  EXPECT_FALSE(engine_->TryReserve(4, 0).has_value());
  EXPECT_FALSE(engine_->TryReserve(4, 2).has_value());
  auto taken = engine_->TryReserve(3, 0);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->size(), 3u);
  EXPECT_EQ(pool_->free(), 2);
}

// What another sequence holds anyway takes no memory a second time.
TEST_F(EngineLoopTest, ASharedPromptIsAdmittedWhereItAloneWouldNotFit) {
  Start({}, 12);
  Output first, second;
  // Seven blocks each at first, six of which are full and the same.
  ASSERT_TRUE(engine_->Add(Make(100, 40, 7), &first).ok());
  while (first.tokens.empty()) {
    while (engine_->Tick()) {
    }
    clock_.AdvanceTo(timers_.NextDeadline());
    timers_.RunDue(clock_.Now());
    engine_->Tick();
  }
  ASSERT_TRUE(engine_->Add(Make(100, 4, 7), &second).ok());
  while (second.finish == FinishReason::kNone) {
    while (engine_->Tick()) {
    }
    clock_.AdvanceTo(std::max(clock_.Now(), timers_.NextDeadline()));
    timers_.RunDue(clock_.Now());
    engine_->Tick();
  }
  EXPECT_EQ(first.finish, FinishReason::kNone) << "it waited for the first";
  EXPECT_EQ(probe_.preempted, 0);
  Run();
  EXPECT_EQ(first.tokens, Expected(100, 40, 7));
  EXPECT_EQ(second.tokens, Expected(100, 4, 7));
}

TEST_F(EngineLoopTest, TellsTelemetryWhatItDid) {
  Start({.max_rows = 48, .max_sequences = 1, .prefill_chunk = 32});
  Output first, second;
  SequenceId id = *engine_->Add(Make(100, 4, 7), &first);
  ASSERT_TRUE(engine_->Add(Make(100, 4, 7), &second).ok());
  const Instant start = clock_.Now();
  while (first.finish == FinishReason::kNone) {
    while (engine_->Tick()) {
    }
    clock_.AdvanceTo(std::max(clock_.Now(), timers_.NextDeadline()));
    timers_.RunDue(clock_.Now());
    engine_->Tick();
  }
  const absl::Duration until_first_ended = clock_.Now() - start;
  engine_->Remove(id);
  Run();
  // The second finds six full blocks of the first's.
  EXPECT_THAT(probe_.looked,
              testing::ElementsAre(std::pair(100, 0), std::pair(100, 96)));
  EXPECT_EQ(probe_.prefill_rows, 100 + 4);
  EXPECT_EQ(probe_.decode_rows, 3 + 3);
  EXPECT_EQ(probe_.tokens, 4 + 4);
  // Four chunks and three tokens, then one and three.
  EXPECT_EQ(probe_.steps, 7 + 4);
  EXPECT_EQ(probe_.busy,
            11 * absl::Milliseconds(2) + 110 * absl::Microseconds(20));
  EXPECT_THAT(probe_.waits,
              testing::ElementsAre(absl::ZeroDuration(), until_first_ended));
  EXPECT_EQ(probe_.preempted, 0);
  EXPECT_EQ(probe_.copied, 0);
}

TEST_F(EngineLoopTest, TheReserveIsKeptFreeAtAdmission) {
  for (int blocks : {9, 10}) {
    engine_.reset();
    cache_.reset();
    Start({.watermark_blocks = 3}, blocks);
    Output first, second;
    // Three blocks and four, each with its next token.
    ASSERT_TRUE(engine_->Add(Make(40, 2, 1), &first).ok());
    ASSERT_TRUE(engine_->Add(Make(60, 2, 2), &second).ok());
    Run();
    EXPECT_EQ(watched_->plans[0].sequences.size(), blocks == 10 ? 2u : 1u);
    EXPECT_EQ(second.tokens, Expected(60, 2, 2));
  }
}

}  // namespace
}  // namespace penstock
