// The life of a post, over every transport: what may be relied on when it is
// cancelled, when it completes, and when nobody on either side asks.

#include <memory>
#include <optional>
#include <vector>

#include "common/env/random.h"
#include "common/model/block_hash.h"
#include "common/transfer/page_header.h"
#include "gtest/gtest.h"
#include "tests/contract/transport_fixture.h"

namespace penstock {
namespace {

using absl::StatusCode;

class LifeTest : public TransportTest {
 protected:
  // What a checksum over this block has to be.
  static uint64_t ChecksumOf(absl::Span<const uint8_t> block) {
    return BlockHasher(HashSecret("conformance")).Checksum(block);
  }

  // Holds the first page that lands.
  std::shared_ptr<LandingGate> HoldLandings() {
    auto gate = std::make_shared<LandingGate>();
    auto destination = DestinationOptions();
    destination.faults = gate;
    Rebuild(SourceOptions(), destination);
    return gate;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LifeTest,
                         testing::Values(TransportKind::kInproc,
                                         TransportKind::kShm,
                                         TransportKind::kTcp),
                         KindName);

// The core counts on it: what the source announces has been reported to the
// destination before.
TEST_P(LifeTest, ACompletionMeansThatTheArrivalIsThere) {
  Prepare(16);
  for (int i = 0; i < 200; ++i) {
    PostAll({Whole(i % 16)});
    ASSERT_TRUE(Completion().status.ok());
    std::optional<PageArrival> arrival = to().PollArrival();
    ASSERT_TRUE(arrival.has_value());
    EXPECT_EQ(arrival->block.index, i % 16);
  }
}

TEST_P(LifeTest, AllMayArriveBeforeAnyCompletionIsAskedFor) {
  Prepare(16);
  for (int i = 0; i < 200; ++i) PostAll({Whole(i % 16)});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(Arrival().block.index, i % 16);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Completion().status.ok());
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

// The peer's engine never polls: posts complete all the same, and nothing that
// counts is lost, however much that does not count came with it.
TEST_P(LifeTest, APeerThatNeverAsksLosesNothing) {
  Prepare(8);
  std::vector<PageWrite> good, refused;
  for (int i = 0; i < 3000; ++i) good.push_back(Layers(i % 8, {0, 1}));
  PostAll(good);
  EXPECT_TRUE(Completion().status.ok());
  // Refused ones end their posts at once: one page each.
  constexpr int kRefused = 5000;
  for (int i = 0; i < kRefused; ++i) PostAll({Layers(9, {0, 1})});
  for (int i = 0; i < kRefused; ++i) {
    EXPECT_EQ(RefusalOf(Completion().status), PageRefusal::kNotPrepared);
  }
  PostAll(good);
  EXPECT_TRUE(Completion().status.ok());
  int arrived = 0, reported = 0;
  while (std::optional<PageArrival> arrival = to().PollArrival()) {
    arrival->status.ok() ? ++arrived : ++reported;
  }
  EXPECT_EQ(arrived, 6000);
  EXPECT_GT(reported, 0);
  EXPECT_LE(reported, kRefused);  // memory is bounded: some may be left out
}

TEST_P(LifeTest, ACancelWaitsForThePageThatIsLanding) {
  auto gate = HoldLandings();
  Prepare(1);
  source_->Fill(0, 1);
  PostId post = PostAll({Whole(0)});
  gate->AwaitHeld();
  from().Cancel(post);
  from().Cancel(post);  // again changes nothing
  // A post that comes after has been through the transport's hands: a
  // completion of the cancelled one would be there by now. (In process the
  // one thread is held itself.)
  if (GetParam() != TransportKind::kInproc) {
    WorkerKey nobody{"nobody", Incarnation(1)};
    from().Post(nobody, kTransfer, {Whole(0)}, Instant::Infinite());
    EXPECT_EQ(Completion().status.code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
  gate->Open();
  PostCompletion done = Completion();
  EXPECT_EQ(done.post, post);
  // It had begun, so it has its real outcome.
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(Arrival().checksum, ChecksumOf(source_->Block(0)));
}

TEST_P(LifeTest, WhatHasNotBegunIsCancelledWhole) {
  auto gate = HoldLandings();
  Prepare(16);
  PostAll({Whole(0)});
  gate->AwaitHeld();
  // More than any transport takes out of its table ahead of time.
  std::vector<PageWrite> writes;
  for (int i = 0; i < 20000; ++i) writes.push_back(Whole(1 + i % 15));
  PostId second = PostAll(writes), third = PostAll({Whole(1)});
  from().Cancel(third);
  from().Cancel(second);
  gate->Open();
  int ended = 0;
  for (int i = 0; i < 3; ++i) {
    PostCompletion done = Completion();
    if (done.post == second || done.post == third) {
      ++ended;
      EXPECT_EQ(done.status.code(), StatusCode::kCancelled);
      EXPECT_LT(done.bytes, 20000u * SmallLayout().block_bytes());
    }
  }
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(Send({Whole(2)}).ok());
}

TEST_P(LifeTest, ACancelAfterTheEndChangesNothing) {
  Prepare(1);
  PostId post = PostAll({Whole(0)});
  // Landed, and the completion not asked for yet; then asked for.
  EXPECT_TRUE(Arrival().status.ok());
  from().Cancel(post);
  EXPECT_TRUE(Completion().status.ok());
  from().Cancel(post);
  from().Cancel(post + 1000);  // never was
  EXPECT_TRUE(Send({Whole(0)}).ok());
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

// Wherever the cancel comes, after the completion the source's blocks are its
// own: what arrives is always what was there before.
TEST_P(LifeTest, TheSourcesMemoryIsItsOwnAfterTheCompletion) {
  Prepare(4);
  SeededRandom random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> expected;
    for (BlockIndex i = 0; i < 4; ++i) {
      source_->Fill(i, round * 4 + i);
      expected.push_back(ChecksumOf(source_->Block(i)));
    }
    PostId post = PostAll({Whole(0), Whole(1), Whole(2), Whole(3)});
    // At once, after some of it, after all of it, or never.
    int before = random.Below(6);
    int seen = 0;
    auto check = [&](const PageArrival& arrival) {
      ASSERT_TRUE(arrival.status.ok()) << arrival.status;
      ASSERT_EQ(arrival.block.index, seen);
      ASSERT_EQ(arrival.checksum, expected[seen]);
      ++seen;
    };
    while (seen < before && seen < 4) check(Arrival());
    if (before < 5) from().Cancel(post);
    PostCompletion done = Completion();
    ASSERT_EQ(done.post, post);
    for (BlockIndex i = 0; i < 4; ++i) source_->Fill(i, 255 - i);
    while (auto arrival = to().PollArrival()) check(*arrival);
    if (done.status.ok()) {
      EXPECT_EQ(seen, 4);
    } else {
      EXPECT_EQ(done.status.code(), StatusCode::kCancelled);
    }
  }
}

// What is known of a page that did not count: whether it was written to.
TEST_P(LifeTest, ARefusalSaysWhetherThePageWasTouched) {
  auto gate = HoldLandings();
  Prepare(1);
  source_->Fill(0, 1);
  PostAll({Whole(0, kGeneration + 1)});
  PageArrival stale = Arrival();
  EXPECT_EQ(RefusalOf(stale.status), PageRefusal::kStaleGeneration);
  EXPECT_FALSE(stale.landed);
  EXPECT_FALSE(Completion().status.ok());

  PostAll({Whole(0)});
  gate->AwaitHeld();
  EXPECT_FALSE(to().Revoke(kTransfer));
  gate->Open();
  PageArrival late = Arrival();
  EXPECT_EQ(RefusalOf(late.status), PageRefusal::kNotPrepared);
  EXPECT_TRUE(late.landed);
  EXPECT_EQ(late.checksum, ChecksumOf(destination_->Block(0)));
  EXPECT_TRUE(destination_->AwaitFence(kTransfer));
}

}  // namespace
}  // namespace penstock
