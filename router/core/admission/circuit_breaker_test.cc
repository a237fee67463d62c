#include "router/core/admission/circuit_breaker.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

using State = CircuitBreaker::State;

class CircuitBreakerTest : public ::testing::Test {
 protected:
  void Fail(int times) {
    for (int i = 0; i < times; ++i) breaker_.OnEnded(Verdict::kBad, now_);
  }
  void Pass(int ms) { now_ = now_ + absl::Milliseconds(ms); }
  State state() const { return breaker_.state(now_); }
  bool allows() const { return breaker_.Allows(now_); }

  Instant now_ = Instant::FromNanos(1);
  CircuitBreaker breaker_{{.failures = 3,
                           .open_for = absl::Milliseconds(100),
                           .max_open = absl::Milliseconds(350)}};
};

TEST_F(CircuitBreakerTest, OpensAfterFailuresInARow) {
  Fail(2);
  breaker_.OnEnded(Verdict::kGood, now_);
  Fail(2);
  EXPECT_EQ(state(), State::kClosed);
  Fail(1);
  EXPECT_EQ(state(), State::kOpen);
  EXPECT_FALSE(allows());
}

TEST_F(CircuitBreakerTest, NeutralEndsTellNothing) {
  Fail(2);
  for (int i = 0; i < 10; ++i) breaker_.OnEnded(Verdict::kNeutral, now_);
  EXPECT_EQ(state(), State::kClosed);
  Fail(1);
  EXPECT_EQ(state(), State::kOpen);
}

TEST_F(CircuitBreakerTest, OneProbeDecides) {
  Fail(3);
  Pass(99);
  EXPECT_FALSE(allows());
  Pass(1);
  EXPECT_EQ(state(), State::kHalfOpen);
  EXPECT_TRUE(allows());
  breaker_.OnStarted(now_);
  EXPECT_FALSE(allows()) << "one at a time";
  breaker_.OnEnded(Verdict::kNeutral, now_);
  EXPECT_TRUE(allows()) << "it told nothing";
  breaker_.OnStarted(now_);
  breaker_.OnEnded(Verdict::kGood, now_);
  EXPECT_EQ(state(), State::kClosed);
  Fail(2);
  EXPECT_EQ(state(), State::kClosed) << "the count begins anew";
}

TEST_F(CircuitBreakerTest, AProbeThatGivesSomethingNeedNotEnd) {
  Fail(3);
  Pass(100);
  breaker_.OnStarted(now_);
  breaker_.OnProgress(now_);
  EXPECT_EQ(state(), State::kClosed);
}

TEST_F(CircuitBreakerTest, EachFailedProbeDoublesThePauseUpToABound) {
  Fail(3);
  for (int pause : {100, 200, 350, 350}) {
    Pass(pause - 1);
    EXPECT_EQ(state(), State::kOpen) << pause;
    Pass(1);
    EXPECT_EQ(state(), State::kHalfOpen) << pause;
    breaker_.OnStarted(now_);
    Fail(1);
  }
  Pass(350);
  breaker_.OnEnded(Verdict::kGood, now_);
  Fail(3);
  Pass(100);
  EXPECT_EQ(state(), State::kHalfOpen) << "the pauses begin anew";
}

// Legs that began before it opened end later.
TEST_F(CircuitBreakerTest, LateEndsNeitherCloseNorProlong) {
  Fail(3);
  breaker_.OnEnded(Verdict::kGood, now_);
  EXPECT_EQ(state(), State::kOpen);
  Pass(50);
  Fail(5);
  Pass(50);
  EXPECT_EQ(state(), State::kHalfOpen);
}

}  // namespace
}  // namespace penstock
