// What every KvTransport promises; see common/transfer/kv_transport.h.

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "common/env/random.h"
#include "common/model/block_hash.h"
#include "common/transfer/page_header.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/contract/transport_fixture.h"

namespace penstock {
namespace {

using absl::StatusCode;

using Bytes = std::vector<uint8_t>;

Bytes Copy(absl::Span<const uint8_t> bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

bool AllZero(absl::Span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](uint8_t byte) { return byte == 0; });
}

class ConformanceTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(All, ConformanceTest,
                         testing::Values(TransportKind::kInproc,
                                         TransportKind::kShm,
                                         TransportKind::kTcp),
                         KindName);

TEST_P(ConformanceTest, SaysWhatItIs) {
  EXPECT_EQ(from().caps().kind, GetParam());
  TransportAddress address = to().Describe();
  EXPECT_EQ(address.kind, GetParam());
  EXPECT_EQ(address.incarnation, destination_->key().incarnation);
  EXPECT_NE(address.access_key, from().Describe().access_key);
}

TEST_P(ConformanceTest, DeliversEqualBytesAndReportsThem) {
  for (BlockIndex i = 0; i < 3; ++i) source_->Fill(i, 10 * i);
  Prepare(3);
  PostId post = PostAll({Whole(2), Whole(0), Whole(1)});
  PostCompletion done = Completion();
  EXPECT_EQ(done.post, post);
  EXPECT_EQ(done.transfer, kTransfer);
  ASSERT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.bytes, 3u * 4 * 512);
  ASSERT_EQ(done.checksums.size(), 3u);

  BlockHasher hasher{HashSecret("conformance")};
  for (int i = 0; i < 3; ++i) {
    BlockIndex block = (i + 2) % 3;  // the order of the writes
    PageArrival arrival = Arrival();
    EXPECT_TRUE(arrival.status.ok()) << arrival.status;
    EXPECT_EQ(arrival.transfer, kTransfer);
    EXPECT_EQ(arrival.block, (BlockRef{block, kGeneration}));
    EXPECT_EQ(arrival.layers, (LayerRange{0, 4}));
    EXPECT_EQ(arrival.bytes, 4u * 512);
    EXPECT_EQ(arrival.checksum, hasher.Checksum(source_->Block(block)));
    EXPECT_EQ(done.checksums[i], arrival.checksum);
    EXPECT_EQ(Copy(destination_->Block(block)), Copy(source_->Block(block)));
  }
  EXPECT_EQ(to().PollArrival(), std::nullopt);
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(ConformanceTest, WritesOnlyTheLayersAsked) {
  source_->Fill(0, 1);
  Prepare(1);
  ASSERT_TRUE(Send({Layers(0, {1, 3})}).ok());
  EXPECT_EQ(Arrival().bytes, 2u * 512);
  EXPECT_TRUE(AllZero(destination_->Layer(0, 0)));
  EXPECT_EQ(Copy(destination_->Layer(0, 1)), Copy(source_->Layer(0, 1)));
  EXPECT_EQ(Copy(destination_->Layer(0, 2)), Copy(source_->Layer(0, 2)));
  EXPECT_TRUE(AllZero(destination_->Layer(0, 3)));
  EXPECT_TRUE(AllZero(destination_->Block(1)));
}

TEST_P(ConformanceTest, BlocksNeedNotHaveTheSameIndex) {
  source_->Fill(9, 5);
  to().PrepareReceive(kTransfer, {{3, 1}});
  ASSERT_TRUE(Send({{9, {3, 1}, {0, 4}}}).ok());
  EXPECT_EQ(Copy(destination_->Block(3)), Copy(source_->Block(9)));
}

TEST_P(ConformanceTest, NothingToWriteCompletes) { EXPECT_TRUE(Send({}).ok()); }

TEST_P(ConformanceTest, TenThousandTinySegments) {
  for (BlockIndex i = 0; i < 16; ++i) source_->Fill(i, i);
  Prepare(16);
  std::vector<PageWrite> writes;
  for (int i = 0; i < 10000; ++i) {
    writes.push_back(Layers(i % 16, {i / 16 % 4, i / 16 % 4 + 1}));
  }
  PostAll(writes);
  PostCompletion done = Completion();
  ASSERT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.bytes, 10000u * 512);
  for (int i = 0; i < 10000; ++i) {
    PageArrival arrival = Arrival();
    ASSERT_TRUE(arrival.status.ok()) << arrival.status;
    ASSERT_EQ(arrival.block.index, i % 16);
    ASSERT_EQ(arrival.checksum, done.checksums[i]);
  }
  EXPECT_EQ(to().PollArrival(), std::nullopt);
  for (BlockIndex i = 0; i < 16; ++i) {
    EXPECT_EQ(Copy(destination_->Block(i)), Copy(source_->Block(i)));
  }
}

TEST_P(ConformanceTest, PagesLargerThanAnySocketBuffer) {
  KvLayout large = SmallLayout();
  large.head_dim = 32768;  // 2 MiB a layer
  large.value_dim = 32768;
  auto source = SourceOptions(), destination = DestinationOptions();
  source.layout = destination.layout = large;
  source.blocks = destination.blocks = 2;
  Rebuild(source, destination);
  source_->Fill(0, 1);
  source_->Fill(1, 2);
  Prepare(2);
  ASSERT_TRUE(Send({Whole(0), Whole(1)}).ok());
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));
  EXPECT_EQ(Copy(destination_->Block(1)), Copy(source_->Block(1)));
}

TEST_P(ConformanceTest, EachPostCompletesOnceInOrder) {
  Prepare(16);
  std::vector<PostId> posts;
  for (int i = 0; i < 200; ++i) posts.push_back(PostAll({Whole(i % 16)}));
  for (PostId post : posts) {
    PostCompletion done = Completion();
    EXPECT_EQ(done.post, post);
    EXPECT_TRUE(done.status.ok()) << done.status;
  }
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(ConformanceTest, BothOrdersOfNotification) {
  Prepare(2);
  // The destination hears first ...
  PostAll({Whole(0)});
  EXPECT_TRUE(Arrival().status.ok());
  EXPECT_TRUE(Completion().status.ok());
  // ... and the source does: whoever asks late still gets it.
  PostAll({Whole(1)});
  EXPECT_TRUE(Completion().status.ok());
  EXPECT_TRUE(Arrival().status.ok());
}

TEST_P(ConformanceTest, BothDirectionsAtOnce) {
  ASSERT_TRUE(to().Connect(source_->key(), from().Describe()).ok());
  source_->Fill(0, 1);
  destination_->Fill(1, 2);
  Prepare(1);
  TransferId back{RequestId(2), AttemptId(1)};
  from().PrepareReceive(back, {{1, kGeneration}});
  PostAll({Whole(0)});
  to().Post(source_->key(), back, {Whole(1)}, Instant::Infinite());
  EXPECT_TRUE(Completion().status.ok());
  auto returned = destination_->AwaitCompletion();
  ASSERT_TRUE(returned.ok() && returned->status.ok());
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));
  EXPECT_EQ(Copy(source_->Block(1)), Copy(destination_->Block(1)));
}

TEST_P(ConformanceTest, RefusesWhatIsNotPrepared) {
  Prepare(1);
  source_->Fill(0, 1);
  source_->Fill(1, 2);
  TransferId other{RequestId(1), AttemptId(2)};
  EXPECT_EQ(RefusalOf(Send({Whole(1)})), PageRefusal::kNotPrepared);
  EXPECT_EQ(RefusalOf(Arrival().status), PageRefusal::kNotPrepared);
  EXPECT_EQ(RefusalOf(Send({Whole(0)}, other)), PageRefusal::kNotPrepared);
  EXPECT_EQ(RefusalOf(Arrival().status), PageRefusal::kNotPrepared);
  EXPECT_EQ(RefusalOf(Send({Whole(0, kGeneration - 1)})),
            PageRefusal::kStaleGeneration);
  EXPECT_EQ(RefusalOf(Arrival().status), PageRefusal::kStaleGeneration);
  EXPECT_TRUE(AllZero(destination_->Block(0)));
  EXPECT_TRUE(AllZero(destination_->Block(1)));
  // The connection is none the worse for it.
  EXPECT_TRUE(Send({Whole(0)}).ok());
}

TEST_P(ConformanceTest, ARefusalEndsThePostNotTheOthers) {
  Prepare(2);
  PostId bad = PostAll({Whole(0), Whole(5), Whole(1)});
  PostId good = PostAll({Whole(1)});
  PostCompletion first = Completion(), second = Completion();
  EXPECT_EQ(first.post, bad);
  EXPECT_EQ(RefusalOf(first.status), PageRefusal::kNotPrepared);
  EXPECT_EQ(second.post, good);
  EXPECT_TRUE(second.status.ok());
}

// Nothing of a connection with these differences may land.
TEST_P(ConformanceTest, RefusesAnotherLayout) {
  auto source = SourceOptions();
  source.layout.arrangement = 2;
  Rebuild(source, DestinationOptions());
  Prepare(1);
  source_->Fill(0, 1);
  EXPECT_EQ(RefusalOf(Send({Whole(0)})), PageRefusal::kWrongLayout);
  EXPECT_TRUE(AllZero(destination_->Block(0)));
}

TEST_P(ConformanceTest, RefusesAnotherClusterKey) {
  auto source = SourceOptions();
  source.cluster_key = "another";
  Rebuild(source, DestinationOptions());
  Prepare(1);
  source_->Fill(0, 1);
  EXPECT_FALSE(Send({Whole(0)}).ok());
  EXPECT_TRUE(AllZero(destination_->Block(0)));
}

TEST_P(ConformanceTest, RefusesAnotherAccessKey) {
  TransportAddress address = to().Describe();
  address.access_key ^= 1;
  ASSERT_TRUE(from().Connect(destination_->key(), address).ok());
  Prepare(1);
  source_->Fill(0, 1);
  EXPECT_EQ(Send({Whole(0)}).code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(AllZero(destination_->Block(0)));
}

TEST_P(ConformanceTest, RefusesAnotherIncarnation) {
  TransportAddress address = to().Describe();
  address.incarnation = Incarnation(99);
  WorkerKey imagined{"decode-0", Incarnation(99)};
  ASSERT_TRUE(from().Connect(imagined, address).ok());
  Prepare(1);
  source_->Fill(0, 1);
  from().Post(imagined, kTransfer, {Whole(0)}, Instant::Infinite());
  EXPECT_EQ(RefusalOf(Completion().status), PageRefusal::kWrongIncarnation);
  EXPECT_TRUE(AllZero(destination_->Block(0)));
}

TEST_P(ConformanceTest, ConnectRefusesAddressesThatCannotBeMeant) {
  TransportAddress address = to().Describe();
  EXPECT_TRUE(from().Connect(destination_->key(), address).ok());  // again
  TransportAddress kind = address;
  kind.kind = GetParam() == TransportKind::kTcp ? TransportKind::kShm
                                                : TransportKind::kTcp;
  EXPECT_EQ(from().Connect(destination_->key(), kind).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(from().Connect({"decode-0", Incarnation(99)}, address).code(),
            StatusCode::kFailedPrecondition);
}

TEST_P(ConformanceTest, APostToNobodyCompletes) {
  from().Post({"nobody", Incarnation(1)}, kTransfer, {Whole(0)},
              Instant::Infinite());
  EXPECT_EQ(Completion().status.code(), StatusCode::kUnavailable);
}

TEST_P(ConformanceTest, RevokeRefusesFromThenOn) {
  Prepare(1);
  ASSERT_TRUE(Send({Whole(0)}).ok());
  ASSERT_TRUE(destination_->AwaitFence(kTransfer));
  Bytes before = Copy(destination_->Block(0));
  source_->Fill(0, 99);
  EXPECT_EQ(RefusalOf(Send({Whole(0)})), PageRefusal::kNotPrepared);
  EXPECT_EQ(Copy(destination_->Block(0)), before);
}

TEST_P(ConformanceTest, RevokeWaitsForThePageInFlight) {
  auto gate = std::make_shared<LandingGate>();
  auto destination = DestinationOptions();
  destination.faults = gate;
  Rebuild(SourceOptions(), destination);
  Prepare(1);
  source_->Fill(0, 1);
  PostAll({Whole(0)});
  gate->AwaitHeld();
  EXPECT_FALSE(to().Revoke(kTransfer));
  gate->Open();
  EXPECT_TRUE(destination_->AwaitFence(kTransfer));
  // It had begun before the fence, but does not count any more.
  EXPECT_EQ(RefusalOf(Arrival().status), PageRefusal::kNotPrepared);
  EXPECT_EQ(RefusalOf(Completion().status), PageRefusal::kNotPrepared);
}

TEST_P(ConformanceTest, NothingLandsBehindTheFence) {
  for (int round = 1; round <= 20; ++round) {
    TransferId transfer{RequestId(round), AttemptId(1)};
    std::vector<BlockRef> blocks;
    std::vector<PageWrite> writes;
    for (BlockIndex i = 0; i < 16; ++i) {
      source_->Fill(i, round * 16 + i);
      blocks.push_back({i, static_cast<uint32_t>(round)});
      writes.push_back(Whole(i, round));
    }
    to().PrepareReceive(transfer, blocks);
    constexpr int kPosts = 8;
    for (int i = 0; i < kPosts; ++i) PostAll(writes, transfer);
    // Somewhere in the middle of them.
    for (int i = 0; i < round; ++i) Arrival();
    ASSERT_TRUE(destination_->AwaitFence(transfer));
    std::vector<Bytes> fenced;
    for (BlockIndex i = 0; i < 16; ++i) {
      // Whoever gets the block next writes something of his own.
      destination_->Fill(i, 200 + i);
      fenced.push_back(Copy(destination_->Block(i)));
    }
    for (int i = 0; i < kPosts; ++i) Completion();
    for (BlockIndex i = 0; i < 16; ++i) {
      EXPECT_EQ(Copy(destination_->Block(i)), fenced[i]);
    }
    while (to().PollArrival()) continue;
  }
}

TEST_P(ConformanceTest, CancelRacesWithDelivery) {
  Prepare(16);
  SeededRandom random(3);
  std::set<PostId> outstanding;
  int delivered = 0, cancelled = 0;
  auto settle = [&](const PostCompletion& done) {
    EXPECT_EQ(outstanding.erase(done.post), 1u);
    done.status.ok() ? ++delivered : ++cancelled;
    if (!done.status.ok()) {
      EXPECT_EQ(done.status.code(), StatusCode::kCancelled) << done.status;
    }
  };
  for (int i = 0; i < 500; ++i) {
    PostId post = PostAll({Whole(i % 16), Whole((i + 1) % 16)});
    outstanding.insert(post);
    // This one, an earlier one, or a finished one.
    if (random.Below(2) == 0) from().Cancel(post - random.Below(post));
    while (auto done = from().PollCompletion()) settle(*done);
  }
  while (!outstanding.empty()) settle(Completion());
  EXPECT_EQ(delivered + cancelled, 500);
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(ConformanceTest, ADeadlineInThePastIsExceeded) {
  Prepare(1);
  PostId post = from().Post(destination_->key(), kTransfer, {Whole(0)},
                            Instant::FromNanos(1));
  PostCompletion done = Completion();
  EXPECT_EQ(done.post, post);
  EXPECT_EQ(done.status.code(), StatusCode::kDeadlineExceeded);
  // Only that one.
  EXPECT_TRUE(Send({Whole(0)}).ok());
}

TEST_P(ConformanceTest, DroppingThePeerFailsItsPosts) {
  auto gate = std::make_shared<LandingGate>();
  auto destination = DestinationOptions();
  destination.faults = gate;
  Rebuild(SourceOptions(), destination);
  Prepare(2);
  PostId first = PostAll({Whole(0)});
  gate->AwaitHeld();
  PostId second = PostAll({Whole(1)});
  from().DropPeer(destination_->key());
  gate->Open();
  std::set<PostId> failed;
  for (int i = 0; i < 2; ++i) {
    PostCompletion done = Completion();
    failed.insert(done.post);
    // In process the page that was being copied may still have made it.
    if (done.post == second || GetParam() != TransportKind::kInproc) {
      EXPECT_EQ(done.status.code(), StatusCode::kUnavailable);
    }
  }
  EXPECT_EQ(failed, (std::set<PostId>{first, second}));
  EXPECT_EQ(Send({Whole(1)}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(from().Connect(destination_->key(), to().Describe()).code(),
            StatusCode::kFailedPrecondition);
}

TEST_P(ConformanceTest, ADroppedSourceIsNotHeard) {
  Prepare(1);
  ASSERT_TRUE(Send({Whole(0)}).ok());
  Bytes before = Copy(destination_->Block(0));
  to().DropPeer(source_->key());
  source_->Fill(0, 77);
  // Once over the old connection, once over one that it tries to make.
  EXPECT_EQ(Send({Whole(0)}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Send({Whole(0)}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Copy(destination_->Block(0)), before);

  // Its next incarnation is.
  auto restarted = SourceOptions();
  restarted.incarnation = Incarnation(12);
  source_.reset();
  source_ = Make(restarted);
  ASSERT_TRUE(from().Connect(destination_->key(), to().Describe()).ok());
  source_->Fill(0, 78);
  EXPECT_TRUE(Send({Whole(0)}).ok());
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));
}

TEST_P(ConformanceTest, AGonePeerFailsPostsWhateverTheirState) {
  Prepare(16);
  std::set<PostId> posts;
  for (int i = 0; i < 50; ++i) posts.insert(PostAll({Whole(i % 16)}));
  Completion();
  destination_->Kill();
  posts.insert(PostAll({Whole(0)}));
  StatusCode last = StatusCode::kOk;
  for (size_t i = 1; i < posts.size(); ++i) last = Completion().status.code();
  EXPECT_EQ(last, StatusCode::kUnavailable);
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(ConformanceTest, ReconnectsToANewIncarnationAtTheSameAddress) {
  Prepare(1);
  ASSERT_TRUE(Send({Whole(0)}).ok());
  TransportAddress address = to().Describe();
  WorkerKey old = destination_->key();
  destination_->Kill();

  auto restarted = DestinationOptions();
  restarted.incarnation = Incarnation(23);
  restarted.listen = address.address;
  destination_ = Make(restarted);
  ASSERT_EQ(to().Describe().address, address.address);
  Prepare(1);
  // What was meant for the old one does not reach the new one. The first post
  // may only find out that the connection is lost.
  source_->Fill(0, 1);
  for (int i = 0; i < 2; ++i) {
    from().Post(old, kTransfer, {Whole(0)}, Instant::Infinite());
    absl::Status status = Completion().status;
    EXPECT_TRUE(status.code() == StatusCode::kUnavailable ||
                RefusalOf(status) == PageRefusal::kWrongIncarnation)
        << status;
  }
  EXPECT_TRUE(AllZero(destination_->Block(0)));

  from().DropPeer(old);
  ASSERT_TRUE(from().Connect(destination_->key(), to().Describe()).ok());
  EXPECT_TRUE(Send({Whole(0)}).ok());
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));
}

TEST_P(ConformanceTest, OneNameOneAddress) {
  auto twin = DestinationOptions();
  twin.listen = to().Describe().address;
  EXPECT_FALSE(TransportWorker::Create(twin).ok());
}

}  // namespace
}  // namespace penstock
