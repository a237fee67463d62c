#include "common/transfer/post_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

const WorkerKey kPeer{"decode-0", Incarnation(5)};
const WorkerKey kOther{"decode-1", Incarnation(6)};

class PostTableTest : public testing::Test {
 protected:
  void Add(PostId id, size_t writes, const WorkerKey& peer = kPeer,
           Instant deadline = Instant::Infinite()) {
    table_.Add({id,
                peer,
                {RequestId(id), AttemptId(1)},
                std::vector<PageWrite>(writes),
                deadline});
  }

  // The only completion there is.
  PostCompletion Only() {
    std::vector<PostCompletion> all = table_.TakeCompletions();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? PostCompletion{} : all[0];
  }

  PostTable table_;
};

TEST_F(PostTableTest, CompletesWithTheLastAck) {
  Add(1, 2);
  for (uint64_t checksum : {11, 12}) {
    auto write = table_.Next(kPeer);
    ASSERT_TRUE(write.has_value());
    table_.SetChecksum(*write, checksum);
  }
  EXPECT_EQ(table_.Next(kPeer), std::nullopt);
  table_.Acked(1, 100, absl::OkStatus());
  EXPECT_TRUE(table_.TakeCompletions().empty());
  table_.Acked(1, 50, absl::OkStatus());
  PostCompletion done = Only();
  EXPECT_EQ(done.post, 1u);
  EXPECT_EQ(done.transfer.request, RequestId(1));
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(done.bytes, 150u);
  EXPECT_THAT(done.checksums, ElementsAre(11, 12));
  EXPECT_TRUE(table_.empty());
}

TEST_F(PostTableTest, SendsInOrderOfPostingForEachPeer) {
  Add(1, 1);
  Add(2, 1, kOther);
  Add(3, 1);
  EXPECT_EQ(table_.Next(kPeer)->post, 1u);
  EXPECT_EQ(table_.Next(kPeer)->post, 3u);
  EXPECT_EQ(table_.Next(kPeer), std::nullopt);
  EXPECT_EQ(table_.Next(kOther)->post, 2u);
}

TEST_F(PostTableTest, NothingToWriteIsDone) {
  Add(1, 0);
  EXPECT_TRUE(Only().status.ok());
}

TEST_F(PostTableTest, ARefusalStopsTheRestButWaitsForWhatFlies) {
  Add(1, 3);
  table_.Next(kPeer);
  table_.Next(kPeer);
  table_.Acked(1, 8, absl::DataLossError("refused"));
  EXPECT_EQ(table_.Next(kPeer), std::nullopt);
  EXPECT_TRUE(table_.TakeCompletions().empty());
  table_.Acked(1, 8, absl::OkStatus());
  PostCompletion done = Only();
  EXPECT_EQ(done.status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(done.bytes, 8u);
}

TEST_F(PostTableTest, CancelOfUnsentIsAtOnce) {
  Add(1, 3);
  table_.Cancel(1);
  EXPECT_EQ(Only().status.code(), StatusCode::kCancelled);
  EXPECT_EQ(table_.Next(kPeer), std::nullopt);
  table_.Cancel(1);
  table_.Cancel(99);
  EXPECT_TRUE(table_.TakeCompletions().empty());
}

TEST_F(PostTableTest, CancelWaitsForWhatFlies) {
  Add(1, 2);
  table_.Next(kPeer);
  table_.Cancel(1);
  EXPECT_TRUE(table_.TakeCompletions().empty());
  table_.Acked(1, 8, absl::OkStatus());
  EXPECT_EQ(Only().status.code(), StatusCode::kCancelled);
}

TEST_F(PostTableTest, CancelAfterAllWasSentTellsTheRealOutcome) {
  Add(1, 1);
  table_.Next(kPeer);
  table_.Cancel(1);
  table_.Acked(1, 8, absl::OkStatus());
  EXPECT_TRUE(Only().status.ok());
}

TEST_F(PostTableTest, DeadlinesExpireInFlightOrNot) {
  Add(1, 1, kPeer, Instant::FromNanos(10));
  Add(2, 1, kOther, Instant::FromNanos(20));
  Add(3, 1, kPeer, Instant::FromNanos(30));
  EXPECT_EQ(table_.NextDeadline(), Instant::FromNanos(10));
  table_.Next(kPeer);
  EXPECT_THAT(table_.Expire(Instant::FromNanos(20)), ElementsAre(kPeer));
  auto done = table_.TakeCompletions();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(done[1].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(table_.NextDeadline(), Instant::FromNanos(30));
  // The ack that comes too late changes nothing.
  table_.Acked(1, 8, absl::OkStatus());
  EXPECT_TRUE(table_.TakeCompletions().empty());
  EXPECT_EQ(table_.Next(kOther), std::nullopt);
}

TEST_F(PostTableTest, ALostPeerFailsItsPostsOnly) {
  Add(1, 2);
  Add(2, 1, kOther);
  Add(3, 1);
  table_.Next(kPeer);
  table_.Fail(kPeer, absl::UnavailableError("gone"));
  auto done = table_.TakeCompletions();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].post, 1u);
  EXPECT_EQ(done[1].post, 3u);
  EXPECT_EQ(done[1].status.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(table_.waiting(kPeer));
  EXPECT_TRUE(table_.waiting(kOther));
  EXPECT_EQ(table_.Next(kOther)->post, 2u);
}

}  // namespace
}  // namespace penstock
