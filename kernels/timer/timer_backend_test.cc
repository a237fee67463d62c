#include "kernels/timer/timer_backend.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int kVocab = 2000;

class TimerBackendTest : public ::testing::Test {
 protected:
  TimerBackendTest() : memory_(1 << 16, 7) {
    options_.spec.vocab_size = kVocab;
    options_.spec.layers = 1;
    options_.spec.kv_heads = 1;
    options_.spec.head_dim = options_.spec.value_dim = 8;
    options_.spec.layer_specs.resize(1);
    options_.arena.bytes = absl::MakeSpan(memory_);
    options_.step_time = absl::Milliseconds(1);
    options_.row_time = absl::Microseconds(1);
    options_.wake = [this] {
      std::lock_guard<std::mutex> lock(mutex_);
      ++wakes_;
      woken_.notify_one();
    };
  }
  StepResult Run(TimerBackend& backend, StepPlan plan) {
    backend.Submit(std::move(plan));
    for (;;) {
      if (std::optional<BackendEvent> event = backend.Poll()) {
        return std::get<StepResult>(*std::move(event));
      }
      std::unique_lock<std::mutex> lock(mutex_);
      woken_.wait(lock, [this] { return wakes_ > 0; });
      --wakes_;
    }
  }
  // One row of one sequence, to be sampled for the position after it.
  static StepPlan Decode(TokenId token, int position) {
    StepPlan plan;
    plan.step = 1;
    plan.tokens = {token};
    plan.positions = {position};
    for (int b = 0; b <= position / kBlockTokens; ++b) {
      plan.block_table.push_back(b);
    }
    plan.sequences = {{0, 1, 0, static_cast<int32_t>(plan.block_table.size())}};
    SampleRow row;
    row.position = static_cast<uint64_t>(position) + 1;
    plan.samples = {row};
    return plan;
  }

  std::vector<uint8_t> memory_;
  TimerBackend::Options options_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int wakes_ = 0;
};

TEST_F(TimerBackendTest, AnswersGoOnAlikeWhereverTheyAre) {
  auto one = *TimerBackend::Create(options_);
  auto other = *TimerBackend::Create(options_);
  std::set<TokenId> seen;
  TokenId token = 600;
  for (int position = 3; position < 20; ++position) {
    const StepResult result = Run(*one, Decode(token, position));
    ASSERT_TRUE(result.status.ok());
    ASSERT_EQ(result.sampled.size(), 1u);
    const TokenId next = result.sampled[0].token;
    EXPECT_EQ(next, TimerBackend::TokenAfter(token, position + 1, kVocab));
    EXPECT_EQ(Run(*other, Decode(token, position)).sampled[0].token, next);
    EXPECT_GE(next, 512);
    EXPECT_LT(next, kVocab - 512);
    seen.insert(next);
    token = next;
  }
  EXPECT_GT(seen.size(), 10u) << "they differ";
  EXPECT_EQ(memory_, std::vector<uint8_t>(1 << 16, 7)) << "pages stay";
}

TEST_F(TimerBackendTest, BannedTokensAreNotDrawn) {
  auto backend = *TimerBackend::Create(options_);
  StepPlan plan = Decode(600, 3);
  const TokenId first = TimerBackend::TokenAfter(600, 4, kVocab);
  plan.samples[0].banned = {first, first + 1};
  EXPECT_EQ(Run(*backend, std::move(plan)).sampled[0].token, first + 2);
}

TEST_F(TimerBackendTest, OptionsOutOfRangeAreNamed) {
  auto refused = [this](const char* name) {
    const absl::Status status = TimerBackend::Create(options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
  };
  options_.step_time = absl::Milliseconds(-1);
  refused("step_time");
  options_.step_time = absl::Milliseconds(1);
  options_.max_rows = 0;
  refused("max_rows");
  options_.max_rows = 1;
  options_.arena = {};
  refused("arena");
}

}  // namespace
}  // namespace penstock
