#include "router/core/admission/worker_guard.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Change = WorkerGuard::Change;

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

class WorkerGuardTest : public ::testing::Test {
 protected:
  static WorkerKey Key(int i, uint64_t life = 1) {
    return {absl::StrCat("w", i), Incarnation(life)};
  }
  void Pool(int workers, WorkerRoles roles = {true, true}) {
    for (int i = 0; i < workers; ++i) guard_.Add(Key(i), roles);
  }
  void Break(LegKind leg, int worker) {
    for (int i = 0; i < options_.breaker.failures; ++i) {
      guard_.Started(leg, Key(worker), now_);
      guard_.Ended(leg, Key(worker), Verdict::kBad, now_);
    }
  }
  std::vector<Change> Update() { return guard_.Update(now_); }
  void Pass(absl::Duration time) { now_ = now_ + time; }

  Instant now_ = Instant::FromNanos(1);
  WorkerGuard::Options options_;
  WorkerGuard guard_{options_};
};

TEST_F(WorkerGuardTest, ABreakerIsOfOneLegAndOneWorker) {
  Pool(3);
  Break(kD, 1);
  EXPECT_THAT(Update(), ElementsAre(Change{kD, Key(1), true}));
  EXPECT_THAT(Update(), IsEmpty());
  EXPECT_EQ(guard_.breaker(kP, Key(1), now_), CircuitBreaker::State::kClosed);
  EXPECT_EQ(guard_.next(now_), now_ + options_.breaker.open_for);
  Pass(options_.breaker.open_for);
  EXPECT_THAT(Update(), ElementsAre(Change{kD, Key(1), false}));
  // The probe is one; what it gives opens the way.
  guard_.Started(kD, Key(1), now_);
  EXPECT_THAT(Update(), ElementsAre(Change{kD, Key(1), true}));
  guard_.Progressed(kD, Key(1), now_);
  EXPECT_THAT(Update(), ElementsAre(Change{kD, Key(1), false}));
}

TEST_F(WorkerGuardTest, EjectionsAreVetoesToo) {
  Pool(3);
  for (int i = 0; i < 30; ++i) {
    guard_.Ended(kP, Key(0), i % 2 ? Verdict::kBad : Verdict::kGood, now_);
    guard_.Ended(kP, Key(1), Verdict::kGood, now_);
  }
  EXPECT_THAT(Update(), IsEmpty());
  Pass(options_.ejector.interval);
  EXPECT_THAT(Update(), ElementsAre(Change{kP, Key(0), true}));
  EXPECT_TRUE(guard_.ejected(kP, Key(0)));
  EXPECT_FALSE(guard_.ejected(kD, Key(0)));
  Pass(options_.ejector.eject_for);
  EXPECT_THAT(Update(), ElementsAre(Change{kP, Key(0), false}));
}

TEST_F(WorkerGuardTest, WhenMostOfAPoolIsVetoedAllOfItIsUsed) {
  Pool(4);
  Break(kD, 0);
  Break(kD, 1);
  EXPECT_THAT(Update(),
              ElementsAre(Change{kD, Key(0), true}, Change{kD, Key(1), true}));
  EXPECT_FALSE(guard_.panics(kD));
  Break(kD, 2);
  EXPECT_THAT(Update(), ElementsAre(Change{kD, Key(0), false},
                                    Change{kD, Key(1), false}));
  EXPECT_TRUE(guard_.panics(kD));
  EXPECT_FALSE(guard_.panics(kP));
}

TEST_F(WorkerGuardTest, NobodyIsAloneAndVetoed) {
  Pool(1);
  Break(kD, 0);
  EXPECT_THAT(Update(), IsEmpty());
}

TEST_F(WorkerGuardTest, OnlyRolesAndLivesThatAreKnownCount) {
  Pool(2, {false, true});
  Break(kP, 0);
  EXPECT_THAT(Update(), IsEmpty());
  Break(kD, 0);
  ASSERT_EQ(Update().size(), 1u);
  guard_.Add(Key(0), {false, true});  // says the same again
  EXPECT_THAT(Update(), IsEmpty());
  guard_.Remove(Key(0));
  guard_.Add(Key(0, 2), {false, true});
  EXPECT_THAT(Update(), IsEmpty()) << "it begins without a veto";
  Break(kD, 0);  // of the old life
  EXPECT_THAT(Update(), IsEmpty());
  EXPECT_EQ(guard_.breaker(kD, Key(0, 2), now_),
            CircuitBreaker::State::kClosed);
}

}  // namespace
}  // namespace penstock
