// How an engine shares cores with other workers of its host.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/engine_fixture.h"

namespace penstock {
namespace {

// Another worker computes a prompt from one instant to another.
struct PromptElsewhere : CoreLedger {
  void Claim(CoreUse use, Instant) override {
    if (claim != use) uses.push_back(use);
    claim = use;
  }
  void Release() override { claim.reset(); }
  CoreClaims Others(Instant now) const override {
    return {.prompts = from <= now && now < to ? 1 : 0};
  }

  Instant from = Instant::Infinite();
  Instant to = Instant::Infinite();
  std::optional<CoreUse> claim;
  std::vector<CoreUse> uses;
};

struct Output : TokenTimes {
  using TokenTimes::TokenTimes;
  // Of tokens that came after `from` and before `to`.
  std::vector<absl::Duration> Gaps(Instant from, Instant to) const {
    std::vector<absl::Duration> gaps;
    for (size_t i = 1; i < times.size(); ++i) {
      if (times[i - 1] > from && times[i] < to) {
        gaps.push_back(times[i] - times[i - 1]);
      }
    }
    return gaps;
  }
};

class EngineTurnsTest : public EngineFixture {
 protected:
  // Steps of one answer take 3 ms.
  EngineTurnsTest() {
    SimBackend::Options backend;
    backend.step_cost = absl::Milliseconds(2);
    backend.row_cost = absl::Milliseconds(1);
    backend_ = std::make_unique<SimBackend>(backend, MakePool(400), &clock_,
                                            &timers_, [] {});
    EngineOptions options;
    options.itl_target = absl::Milliseconds(50);
    EngineLoop::Ports ports{backend_.get(), pool_.get(), cache_.get(),
                            policy_.get(),  &hasher_,    &clock_,
                            &probe_};
    ports.timers = &timers_;
    ports.cores = &ledger_;
    engine_ = std::make_unique<EngineLoop>(options, ports);
  }
  ~EngineTurnsTest() override { engine_.reset(); }  // before the ledger

  struct NoProbe : EngineProbe {
  } probe_;
  PromptElsewhere ledger_;
};

TEST_F(EngineTurnsTest, AnswersTakeTurnsWhileAPromptIsComputedElsewhere) {
  ledger_.from = clock_.Now() + absl::Milliseconds(300);
  ledger_.to = ledger_.from + absl::Milliseconds(700);
  Output answer(&clock_);
  ASSERT_TRUE(engine_->Add(Make(20, 300, 5), &answer).ok());
  Run();
  EXPECT_EQ(answer.tokens, Expected(20, 300, 5));
  const auto every = [](absl::Duration gap) {
    return testing::Each(testing::Eq(gap));
  };
  const Instant start = Instant::FromNanos(0);
  EXPECT_THAT(answer.Gaps(start, ledger_.from), every(absl::Milliseconds(3)));
  const auto meanwhile = answer.Gaps(ledger_.from, ledger_.to);
  EXPECT_GE(meanwhile.size(), 20u);
  EXPECT_THAT(meanwhile, every(absl::Milliseconds(24)));
  EXPECT_THAT(
      answer.Gaps(ledger_.to + absl::Milliseconds(20), Instant::Infinite()),
      every(absl::Milliseconds(3)));
}

TEST_F(EngineTurnsTest, ClaimsWhatItComputesUntilItIsIdle) {
  Output answer(&clock_);
  ASSERT_TRUE(engine_->Add(Make(20, 30, 5), &answer).ok());
  Settle();
  EXPECT_EQ(ledger_.claim, CoreUse::kPrompts);
  Run();
  EXPECT_EQ(ledger_.uses,
            (std::vector<CoreUse>{CoreUse::kPrompts, CoreUse::kAnswers}));
  for (int id = 1; engine_->busy(); ++id) engine_->Remove(SequenceId(id));
  Settle();
  EXPECT_FALSE(ledger_.claim.has_value());
}

// Its own prompts are not held up by those of others.
TEST_F(EngineTurnsTest, PromptsGoOnBesideOthers) {
  ledger_.from = clock_.Now();
  Output answer(&clock_);
  const Instant start = clock_.Now();
  ASSERT_TRUE(engine_->Add(Make(2000, 1, 7), &answer).ok());
  Run();
  ASSERT_EQ(answer.times.size(), 1u);
  // Eight chunks of at most 256 rows.
  EXPECT_EQ(answer.times[0] - start, absl::Milliseconds(8 * 2 + 2000));
}

}  // namespace
}  // namespace penstock
