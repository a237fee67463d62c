#include "common/engine/kept_kv.h"

#include <numeric>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr RequestId kRequest(7);

class KeptKvTest : public testing::Test {
 protected:
  // Tokens 0, 1, 2, ...
  static std::vector<TokenId> Tokens(int count) {
    std::vector<TokenId> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
  int Keep(RequestId request, int tokens, int computed) {
    return kept_.Keep(
        request,
        {Tokens(tokens), *pool_.TryAllocate((computed + 15) / 16), computed});
  }

  ManualClock clock_;
  Timers timers_;
  BlockPool pool_{10};
  KeptKv kept_{absl::Seconds(10), &clock_, &timers_};
};

TEST_F(KeptKvTest, GivesTheNextLegWhatItsHistoryHasInCommon) {
  EXPECT_EQ(Keep(kRequest, 50, 40), 40);
  std::vector<TokenId> history = Tokens(60);
  EXPECT_EQ(kept_.Look(kRequest, history), 40);
  history[20] = 999;
  EXPECT_EQ(kept_.Look(kRequest, history), 20);
  KeptKv::Prefix taken = kept_.Take(kRequest, history);
  EXPECT_EQ(taken.computed, 20);
  EXPECT_EQ(taken.tokens, Tokens(20));
  EXPECT_EQ(taken.blocks.size(), 2u);
  EXPECT_EQ(pool_.free(), 8) << "the third block is let go";
  EXPECT_TRUE(kept_.empty());
  EXPECT_EQ(kept_.Take(kRequest, history).computed, 0);
}

TEST_F(KeptKvTest, ASecondKeepReplacesTheFirst) {
  Keep(kRequest, 16, 16);
  Keep(kRequest, 32, 32);
  EXPECT_EQ(pool_.free(), 8);
  EXPECT_EQ(kept_.Look(kRequest, Tokens(32)), 32);
}

TEST_F(KeptKvTest, TheLeaseEndsItByItself) {
  Keep(kRequest, 16, 16);
  clock_.Advance(absl::Seconds(9));
  timers_.RunDue(clock_.Now());
  EXPECT_TRUE(kept_.Has(kRequest));
  clock_.Advance(absl::Seconds(1));
  timers_.RunDue(clock_.Now());
  EXPECT_FALSE(kept_.Has(kRequest));
  EXPECT_EQ(pool_.free(), 10);
  EXPECT_EQ(timers_.size(), 0u);
}

TEST_F(KeptKvTest, TheLeaseOfAWaitingLegBeginsAnew) {
  Keep(kRequest, 16, 16);
  clock_.Advance(absl::Seconds(9));
  kept_.Renew(kRequest);
  kept_.Renew(RequestId(8));  // keeps nothing: no-op
  clock_.Advance(absl::Seconds(9));
  timers_.RunDue(clock_.Now());
  EXPECT_TRUE(kept_.Has(kRequest));
  clock_.Advance(absl::Seconds(1));
  timers_.RunDue(clock_.Now());
  EXPECT_FALSE(kept_.Has(kRequest));
  EXPECT_EQ(timers_.size(), 0u);
}

TEST_F(KeptKvTest, OnlyWhatNobodyElseHoldsCanBeReclaimed) {
  Keep(RequestId(1), 32, 32);
  EXPECT_EQ(pool_.kept(), 2);
  KeptKv::Prefix taken = kept_.Take(RequestId(1), Tokens(32));
  KeptKv::Prefix same{Tokens(16), {}, 16};
  same.blocks.push_back(taken.blocks[0].Share());
  kept_.Keep(RequestId(2), std::move(same));
  EXPECT_EQ(pool_.kept(), 0) << "its taker holds it too";
  kept_.Keep(RequestId(1), std::move(taken));
  EXPECT_EQ(pool_.kept(), 2) << "both holds are kept ones";
}

TEST_F(KeptKvTest, TheOldestMakesRoomFirst) {
  Keep(RequestId(9), 16, 16);
  Keep(RequestId(3), 16, 16);
  EXPECT_TRUE(kept_.DropOldest());
  EXPECT_FALSE(kept_.Has(RequestId(9)));
  EXPECT_TRUE(kept_.Has(RequestId(3)));
  EXPECT_TRUE(kept_.DropOldest());
  EXPECT_FALSE(kept_.DropOldest());
  EXPECT_EQ(pool_.free(), 10);
  EXPECT_EQ(timers_.size(), 0u);
}

}  // namespace
}  // namespace penstock
