#include "common/transfer/receive_ledger.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr Incarnation kSelf(77);
constexpr TransferId kFirst{RequestId(1), AttemptId(1)};
constexpr TransferId kSecond{RequestId(1), AttemptId(2)};

class ReceiveLedgerTest : public testing::Test {
 protected:
  std::optional<PageRefusal> Begin(TransferId transfer, BlockRef block) {
    PageHeader header;
    header.transfer = transfer;
    header.block = block;
    header.destination = kSelf;
    header.sequence = ++sequence_;
    return ledger_.BeginLanding(header, channel_);
  }

  ReceiveLedger ledger_{kSelf};
  ReceiveChannel channel_;
  uint64_t sequence_ = 0;
};

TEST_F(ReceiveLedgerTest, AdmitsOnlyWhatIsPrepared) {
  ledger_.Prepare(kFirst, {{3, 10}, {4, 11}});
  EXPECT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
  EXPECT_EQ(Begin(kFirst, {4, 11}), std::nullopt);
  EXPECT_EQ(Begin(kFirst, {5, 10}), PageRefusal::kNotPrepared);
  EXPECT_EQ(Begin(kFirst, {-1, 10}), PageRefusal::kNotPrepared);
  EXPECT_EQ(Begin(kSecond, {3, 10}), PageRefusal::kNotPrepared);
  EXPECT_EQ(Begin(kFirst, {3, 9}), PageRefusal::kStaleGeneration);
  EXPECT_EQ(Begin(kFirst, {3, 11}), PageRefusal::kStaleGeneration);
}

TEST_F(ReceiveLedgerTest, RefusesAnotherIncarnation) {
  ledger_.Prepare(kFirst, {{3, 10}});
  PageHeader header;
  header.transfer = kFirst;
  header.block = {3, 10};
  header.destination = Incarnation(78);
  header.sequence = 1;
  EXPECT_EQ(ledger_.BeginLanding(header, channel_),
            PageRefusal::kWrongIncarnation);
}

TEST_F(ReceiveLedgerTest, SequencesOnlyRise) {
  ledger_.Prepare(kFirst, {{3, 10}});
  EXPECT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
  --sequence_;
  EXPECT_EQ(Begin(kFirst, {3, 10}), PageRefusal::kReplayedSequence);
  sequence_ = 99;
  EXPECT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
  // A refused page has used its number up, too.
  EXPECT_EQ(Begin(kFirst, {3, 9}), PageRefusal::kStaleGeneration);
  --sequence_;
  EXPECT_EQ(Begin(kFirst, {3, 10}), PageRefusal::kReplayedSequence);
  // Another connection counts for itself.
  channel_ = {};
  sequence_ = 0;
  EXPECT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
}

TEST_F(ReceiveLedgerTest, RevokeIsAtOnceWhenNothingLands) {
  ledger_.Prepare(kFirst, {{3, 10}});
  ASSERT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
  auto end = ledger_.EndLanding(kFirst);
  EXPECT_FALSE(end.revoked);
  EXPECT_FALSE(end.fenced);
  EXPECT_TRUE(ledger_.Revoke(kFirst));
  EXPECT_EQ(Begin(kFirst, {3, 10}), PageRefusal::kNotPrepared);
  EXPECT_EQ(ledger_.open_transfers(), 0u);
  // The block is free for another transfer.
  ledger_.Prepare(kSecond, {{3, 11}});
}

TEST_F(ReceiveLedgerTest, RevokeWaitsForEveryLanding) {
  ledger_.Prepare(kFirst, {{3, 10}, {4, 10}});
  ASSERT_EQ(Begin(kFirst, {3, 10}), std::nullopt);
  ASSERT_EQ(Begin(kFirst, {4, 10}), std::nullopt);
  EXPECT_FALSE(ledger_.revoking(kFirst));
  EXPECT_FALSE(ledger_.Revoke(kFirst));
  EXPECT_TRUE(ledger_.revoking(kFirst));
  EXPECT_EQ(Begin(kFirst, {3, 10}), PageRefusal::kNotPrepared);
  auto end = ledger_.EndLanding(kFirst);
  EXPECT_TRUE(end.revoked);
  EXPECT_FALSE(end.fenced);
  EXPECT_FALSE(ledger_.Revoke(kFirst));
  end = ledger_.EndLanding(kFirst);
  EXPECT_TRUE(end.revoked);
  EXPECT_TRUE(end.fenced);
  EXPECT_TRUE(ledger_.Revoke(kFirst));
}

TEST_F(ReceiveLedgerTest, PrepareRepeatsButNeverShares) {
  ledger_.Prepare(kFirst, {{3, 10}});
  ledger_.Prepare(kFirst, {{3, 10}, {4, 1}});
  EXPECT_DEATH(ledger_.Prepare(kSecond, {{3, 10}}), "another transfer");
  EXPECT_DEATH(ledger_.Prepare(kFirst, {{3, 11}}), "another generation");
  ASSERT_EQ(Begin(kFirst, {4, 1}), std::nullopt);
  ASSERT_FALSE(ledger_.Revoke(kFirst));
  EXPECT_DEATH(ledger_.Prepare(kFirst, {{9, 1}}), "being revoked");
  // A pending fence still guards its blocks.
  EXPECT_DEATH(ledger_.Prepare(kSecond, {{3, 11}}), "another transfer");
  EXPECT_DEATH(ledger_.EndLanding(kSecond), "no landing");
}

}  // namespace
}  // namespace penstock
