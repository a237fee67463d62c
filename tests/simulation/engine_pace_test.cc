// How long running answers wait for a prompt that arrives beside them.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/engine_fixture.h"

namespace penstock {
namespace {

struct Output : TokenTimes {
  using TokenTimes::TokenTimes;
  absl::Duration LongestGap(size_t from, size_t to) const {
    absl::Duration longest;
    for (size_t i = from + 1; i < to; ++i) {
      longest = std::max(longest, times[i] - times[i - 1]);
    }
    return longest;
  }
};

struct NoProbe : EngineProbe {};

class EnginePaceTest : public EngineFixture {
 protected:
  // Steps of 2 ms and 1 ms for each row, of which the engine has seen three.
  void Start(absl::Duration itl_target) {
    SimBackend::Options backend;
    backend.step_cost = absl::Milliseconds(2);
    backend.row_cost = absl::Milliseconds(1);
    backend_ = std::make_unique<SimBackend>(backend, MakePool(400), &clock_,
                                            &timers_, [] {});
    EngineOptions options;
    options.itl_target = itl_target;
    for (const auto& [rows, behind] :
         {std::pair(1, 0), std::pair(32, 0), std::pair(16, 512)}) {
      MeasuredStep step;
      step.size.Add(rows, behind, 1);
      step.took = backend.step_cost + rows * backend.row_cost;
      options.measured.push_back(step);
    }
    engine_ = std::make_unique<EngineLoop>(
        options, EngineLoop::Ports{backend_.get(), pool_.get(), cache_.get(),
                                   policy_.get(), &hasher_, &clock_, &probe_});
  }

  // The longest gap of three answers while a prompt of 2,000 tokens comes, and
  // how long its first token takes.
  struct Waits {
    absl::Duration gap, first_token;
  };
  Waits Measure(absl::Duration itl_target) {
    Start(itl_target);
    std::vector<std::unique_ptr<Output>> streams;
    for (int i = 0; i < 3; ++i) {
      streams.push_back(std::make_unique<Output>(&clock_));
      EXPECT_TRUE(
          engine_->Add(Make(40, 400, 10 * i + 1), streams[i].get()).ok());
    }
    Settle();
    while (streams[2]->tokens.size() < 20 && Step()) Settle();
    const size_t before = streams[0]->tokens.size();
    const Instant began = clock_.Now();
    Output prompt(&clock_);
    EXPECT_TRUE(engine_->Add(Make(2000, 1, 77), &prompt).ok());
    Settle();
    while (prompt.tokens.empty() && Step()) Settle();
    const size_t after = streams[0]->tokens.size();
    EXPECT_EQ(prompt.tokens, Expected(2000, 1, 77));
    const Waits waits{streams[0]->LongestGap(before - 1, after),
                      clock_.Now() - began};
    Run();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(streams[i]->tokens, Expected(40, 400, 10 * i + 1));
    }
    return waits;
  }
  NoProbe probe_;
};

TEST_F(EnginePaceTest, WithoutATargetAnswersWaitForWholeChunks) {
  const Waits waits = Measure(absl::ZeroDuration());
  EXPECT_EQ(waits.gap, absl::Milliseconds(2 + 256));
}

// 50 ms hold 45 rows of the prompt beside three of the answers, and the prompt
// takes as many steps as that makes: 10% more than alone.
TEST_F(EnginePaceTest, ThePromptIsCutToFitTheTarget) {
  const Waits waits = Measure(absl::Milliseconds(50));
  EXPECT_LE(waits.gap, absl::Milliseconds(52));
  EXPECT_GE(waits.gap, absl::Milliseconds(45));
  EXPECT_LE(waits.first_token, absl::Milliseconds(2000 * 50 / 43));
}

// A target that nothing can meet does not keep a prompt from going on.
TEST_F(EnginePaceTest, APromptGoesOnBlockByBlock) {
  const Waits waits = Measure(absl::Milliseconds(1));
  EXPECT_EQ(waits.gap, absl::Milliseconds(2 + 3 + kBlockTokens));
}

}  // namespace
}  // namespace penstock
