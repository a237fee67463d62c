// What the parties see when pages are delayed, reordered, doubled, lost, late
// or damaged, over every transport.

#include <algorithm>
#include <memory>
#include <vector>

#include "common/transfer/page_faults.h"
#include "common/transfer/page_header.h"
#include "common/transfer/testing/faulty_transport.h"
#include "gtest/gtest.h"
#include "tests/contract/transport_fixture.h"

namespace penstock {
namespace {

using absl::StatusCode;
using Fault = FaultyTransport::Fault;
using Bytes = std::vector<uint8_t>;

Bytes Copy(absl::Span<const uint8_t> bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

class FaultsTest : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    source_->Wrap([this](std::unique_ptr<KvTransport> inner) {
      auto faulty = std::make_unique<FaultyTransport>(std::move(inner),
                                                      &source_->clock());
      faulty_ = faulty.get();
      return faulty;
    });
  }

  FaultyTransport* faulty_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(All, FaultsTest,
                         testing::Values(TransportKind::kInproc,
                                         TransportKind::kShm,
                                         TransportKind::kTcp),
                         KindName);

TEST_P(FaultsTest, ReorderedPostsAllArrive) {
  Prepare(3);
  for (BlockIndex i = 0; i < 3; ++i) source_->Fill(i, i + 1);
  faulty_->Script({Fault::kHold, Fault::kHold, Fault::kHold});
  std::vector<PostId> posts;
  for (BlockIndex i = 0; i < 3; ++i) posts.push_back(PostAll({Whole(i)}));
  EXPECT_EQ(faulty_->held(), posts);
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
  for (int i = 2; i >= 0; --i) faulty_->Release(posts[i]);
  for (int i = 2; i >= 0; --i) {
    PostCompletion done = Completion();
    EXPECT_EQ(done.post, posts[i]);
    EXPECT_TRUE(done.status.ok());
    EXPECT_EQ(Arrival().block.index, i);
    EXPECT_EQ(Copy(destination_->Block(i)), Copy(source_->Block(i)));
  }
}

TEST_P(FaultsTest, ADoubledPostArrivesTwiceAndCompletesOnce) {
  Prepare(1);
  source_->Fill(0, 1);
  faulty_->Script({Fault::kDuplicate});
  EXPECT_TRUE(Send({Whole(0)}).ok());
  uint64_t checksum = Arrival().checksum;
  EXPECT_EQ(Arrival().checksum, checksum);
  // Were there a second completion it would come before this one's.
  EXPECT_TRUE(Send({Whole(0)}).ok());
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(FaultsTest, ADoubleThatComesAfterTheFenceIsRefused) {
  Prepare(1);
  source_->Fill(0, 1);
  ASSERT_TRUE(Send({Whole(0)}).ok());
  faulty_->Script({Fault::kHold});
  PostId copy = PostAll({Whole(0)});
  ASSERT_TRUE(destination_->AwaitFence(kTransfer));
  destination_->Fill(0, 100);
  Bytes own = Copy(destination_->Block(0));
  faulty_->Release(copy);
  EXPECT_EQ(RefusalOf(Completion().status), PageRefusal::kNotPrepared);
  EXPECT_EQ(Copy(destination_->Block(0)), own);
}

TEST_P(FaultsTest, ALostPostEndsByDeadlineCancelOrDrop) {
  Prepare(1);
  faulty_->Script({Fault::kDrop, Fault::kDrop, Fault::kDrop});
  from().Post(destination_->key(), kTransfer, {Whole(0)},
              Instant::FromNanos(1));
  EXPECT_EQ(Completion().status.code(), StatusCode::kDeadlineExceeded);
  PostId post = PostAll({Whole(0)});
  from().Cancel(post);
  EXPECT_EQ(Completion().status.code(), StatusCode::kCancelled);
  PostAll({Whole(0)});
  from().DropPeer(destination_->key());
  EXPECT_EQ(Completion().status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(to().PollArrival(), std::nullopt);
}

TEST_P(FaultsTest, ALateWriteIsStoppedByTheFenceAlone) {
  Prepare(2);
  source_->Fill(0, 1);
  faulty_->Script({Fault::kHold, Fault::kHold});
  PostId early = PostAll({Whole(0)}), late = PostAll({Whole(0)});
  from().Cancel(early);
  from().Cancel(late);
  EXPECT_EQ(Completion().status.code(), StatusCode::kCancelled);
  EXPECT_EQ(Completion().status.code(), StatusCode::kCancelled);
  // Without a fence it lands, though the source has given up.
  faulty_->Release(early);
  EXPECT_TRUE(Arrival().status.ok());
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));

  ASSERT_TRUE(destination_->AwaitFence(kTransfer));
  destination_->Fill(0, 100);
  Bytes own = Copy(destination_->Block(0));
  faulty_->Release(late);
  EXPECT_EQ(RefusalOf(Arrival().status), PageRefusal::kNotPrepared);
  EXPECT_EQ(Copy(destination_->Block(0)), own);
  EXPECT_EQ(from().PollCompletion(), std::nullopt);
}

TEST_P(FaultsTest, ARestartedPeerGetsNothingMeantForTheOld) {
  Prepare(1);
  source_->Fill(0, 1);
  faulty_->Script({Fault::kHold});
  PostId held = PostAll({Whole(0)});
  WorkerKey old = destination_->key();
  auto restarted = DestinationOptions();
  restarted.incarnation = Incarnation(23);
  restarted.listen = to().Describe().address;
  destination_->Kill();
  destination_ = Make(restarted);
  Prepare(1);
  from().DropPeer(old);
  EXPECT_EQ(Completion().status.code(), StatusCode::kUnavailable);
  ASSERT_TRUE(from().Connect(destination_->key(), to().Describe()).ok());
  faulty_->Release(held);  // a late write to a peer that is gone
  source_->Fill(0, 2);
  EXPECT_TRUE(Send({Whole(0)}).ok());
  EXPECT_TRUE(Arrival().status.ok());
  EXPECT_EQ(to().PollArrival(), std::nullopt);
  EXPECT_EQ(Copy(destination_->Block(0)), Copy(source_->Block(0)));
}

// Flips one bit of every page while it is in flight; with `hide` the source
// claims the checksum of the damaged bytes, so that nobody can tell.
class BitFlip : public PageFaults {
 public:
  BitFlip(size_t at, bool hide) : at_(at), hide_(hide) {}

  uint64_t OnSend(
      const PageHeader& header,
      const std::vector<absl::Span<const uint8_t>>& payload) override {
    if (!hide_) return header.payload_checksum;
    Bytes damaged(payload[0].begin(), payload[0].end());
    damaged[at_] ^= 0x40;
    return BlockHasher(HashSecret("conformance")).Checksum(damaged);
  }

  void OnLanded(const PageHeader&,
                const std::vector<absl::Span<uint8_t>>& payload) override {
    payload[0][at_] ^= 0x40;
  }

 private:
  const size_t at_;
  const bool hide_;
};

TEST_P(FaultsTest, AFlippedBitIsRefusedAtBothEnds) {
  auto flip = std::make_shared<BitFlip>(1234, /*hide=*/false);
  auto source = SourceOptions(), destination = DestinationOptions();
  source.faults = destination.faults = flip;
  Rebuild(source, destination);
  Prepare(1);
  source_->Fill(0, 1);
  EXPECT_EQ(RefusalOf(Send({Whole(0)})), PageRefusal::kBadPayloadChecksum);
  PageArrival arrival = Arrival();
  EXPECT_EQ(RefusalOf(arrival.status), PageRefusal::kBadPayloadChecksum);
  // Whatever lay there before, it is gone.
  EXPECT_TRUE(arrival.landed);
  EXPECT_EQ(
      arrival.checksum,
      BlockHasher(HashSecret("conformance")).Checksum(destination_->Block(0)));
}

TEST_P(FaultsTest, AFlippedBitWithItsChecksumArrives) {
  auto flip = std::make_shared<BitFlip>(1234, /*hide=*/true);
  auto source = SourceOptions(), destination = DestinationOptions();
  source.faults = destination.faults = flip;
  Rebuild(source, destination);
  Prepare(1);
  source_->Fill(0, 1);
  PostAll({Whole(0)});
  PostCompletion done = Completion();
  ASSERT_TRUE(done.status.ok()) << done.status;
  PageArrival arrival = Arrival();
  EXPECT_TRUE(arrival.status.ok());
  EXPECT_EQ(arrival.checksum, done.checksums[0]);
  Bytes expected = Copy(source_->Block(0));
  expected[1234] ^= 0x40;
  EXPECT_EQ(Copy(destination_->Block(0)), expected);
}

// A destination that has stopped taking pages does not hold the source up.
// In process there is no such thing: the source's own thread does the work.
class StalledTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Sockets, StalledTest,
                         testing::Values(TransportKind::kShm,
                                         TransportKind::kTcp),
                         KindName);

TEST_P(StalledTest, AShortDeadlineIsKept) {
  auto gate = std::make_shared<LandingGate>();
  auto destination = DestinationOptions();
  destination.faults = gate;
  Rebuild(SourceOptions(), destination);
  Prepare(16);
  PostId first = PostAll({Whole(0)});
  gate->AwaitHeld();
  std::vector<PageWrite> writes;
  for (int i = 0; i < 2000; ++i) writes.push_back(Whole(i % 16));
  PostId second = from().Post(destination_->key(), kTransfer, writes,
                              source_->clock().Now() + absl::Milliseconds(20));
  PostCompletion done = Completion();
  EXPECT_EQ(done.post, second);
  EXPECT_EQ(done.status.code(), StatusCode::kDeadlineExceeded);
  // The blocks are the source's again, whatever still waits to be sent.
  for (BlockIndex i = 0; i < 16; ++i) source_->Fill(i, i);
  gate->Open();
  done = Completion();
  EXPECT_EQ(done.post, first);
  EXPECT_TRUE(done.status.ok()) << done.status;
  // The connection goes on.
  EXPECT_TRUE(Send({Whole(3)}).ok());
  // A stream carries what was queued as it was before the blocks changed;
  // shared memory may be read late, which the checksum tells.
  while (auto arrival = to().PollArrival()) {
    EXPECT_TRUE(arrival->status.ok() || (GetParam() == TransportKind::kShm &&
                                         RefusalOf(arrival->status) ==
                                             PageRefusal::kBadPayloadChecksum))
        << arrival->status;
  }
  EXPECT_EQ(Copy(destination_->Block(3)), Copy(source_->Block(3)));
}

}  // namespace
}  // namespace penstock
