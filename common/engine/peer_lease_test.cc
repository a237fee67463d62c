#include "common/engine/peer_lease.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

class PeerLeaseTest : public testing::Test {
 protected:
  PeerLeaseTest() {
    context_.clock = &clock_;
    context_.timers = &timers_;
    context_.options.lease = absl::Seconds(10);
    context_.options.renew_every = absl::Seconds(3);
    lease_ = std::make_unique<PeerLease>(
        &context_, [this] { ++renewed_; }, [this] { ++expired_; });
  }

  void Wait(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(absl::Seconds(1));
      timers_.RunDue(clock_.Now());
    }
  }

  ManualClock clock_;
  Timers timers_;
  WorkerContext context_;
  int renewed_ = 0;
  int expired_ = 0;
  std::unique_ptr<PeerLease> lease_;
};

TEST_F(PeerLeaseTest, ExpiresWhenThePeerHasBeenSilentForTheLease) {
  Wait(100);
  EXPECT_EQ(expired_, 0) << "nothing runs before the first sign of life";
  lease_->Refresh();
  Wait(9);
  lease_->Refresh();
  Wait(9);
  EXPECT_EQ(expired_, 0);
  Wait(1);
  EXPECT_EQ(expired_, 1);
  Wait(100);
  EXPECT_EQ(expired_, 1);
  EXPECT_EQ(renewed_, 0);
}

TEST_F(PeerLeaseTest, RenewsEverySoOften) {
  lease_->StartRenewing();
  Wait(2);
  EXPECT_EQ(renewed_, 0);
  Wait(1);
  EXPECT_EQ(renewed_, 1);
  Wait(6);
  EXPECT_EQ(renewed_, 3);
  EXPECT_EQ(expired_, 0);
}

TEST_F(PeerLeaseTest, BothEndWithIt) {
  lease_->Refresh();
  lease_->StartRenewing();
  lease_->End();
  EXPECT_EQ(timers_.NextDeadline(), Instant::Infinite());
  lease_->End();
  lease_->Refresh();
  lease_->StartRenewing();
  lease_.reset();
  EXPECT_EQ(timers_.NextDeadline(), Instant::Infinite());
}

}  // namespace
}  // namespace penstock
