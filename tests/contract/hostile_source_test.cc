// What a destination does with a source that breaks the rules: by mistake with
// the cluster's key, or without it on purpose.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/transfer/little_endian.h"
#include "gtest/gtest.h"
#include "tests/contract/raw_source.h"
#include "tests/contract/transport_worker.h"

namespace penstock {
namespace {

using absl::StatusCode;
using Bytes = std::vector<uint8_t>;

constexpr TransferId kTransfer{RequestId(1), AttemptId(1)};
constexpr BlockRef kBlock{3, 7};

class HostileSourceTest : public testing::TestWithParam<TransportKind> {
 protected:
  void Start(absl::Duration handshake = absl::Seconds(60)) {
    TransportWorker::Options options;
    options.kind = GetParam();
    options.name = "decode-0";
    options.incarnation = Incarnation(22);
    options.handshake = handshake;
    auto worker = TransportWorker::Create(options);
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    to().PrepareReceive(kTransfer, {kBlock});
  }

  void SetUp() override { Start(); }

  KvTransport& to() { return worker_->transport(); }
  RawSource Dial() { return RawSource(to().Describe()); }

  // What this kind wants to be passed in the handshake.
  int Memory() const {
    return GetParam() == TransportKind::kShm ? memory_->arena().fd : -1;
  }
  // What follows a header: the payload, or where it lies.
  Bytes Body() const {
    if (GetParam() == TransportKind::kTcp) return payload_;
    return Bytes(8);  // block 0
  }
  void FillMemory() {
    std::copy(payload_.begin(), payload_.end(), memory_->arena().bytes.begin());
  }
  bool Untouched() const {
    absl::Span<uint8_t> block = worker_->Block(kBlock.index);
    return std::all_of(block.begin(), block.end(),
                       [](uint8_t byte) { return byte == 0; });
  }

  const Bytes payload_ = Bytes(SmallLayout().block_bytes(), 0x5a);
  std::unique_ptr<ArenaMemory> memory_ =
      *ArenaMemory::Create(2 * SmallLayout().block_bytes());
  std::unique_ptr<TransportWorker> worker_;
};
INSTANTIATE_TEST_SUITE_P(Sockets, HostileSourceTest,
                         testing::Values(TransportKind::kShm,
                                         TransportKind::kTcp),
                         [](const auto& info) {
                           return std::string(TransportName(info.param));
                         });

TEST_P(HostileSourceTest, AGoodOneIsTaken) {
  FillMemory();
  RawSource source = Dial();
  ASSERT_TRUE(source.Greet(Memory()).ok());
  source.Send(source.Encoded(source.Page(kTransfer, kBlock, payload_)));
  source.Send(Body());
  EXPECT_EQ(source.Ack().refusal, std::nullopt);
  absl::Span<uint8_t> block = worker_->Block(kBlock.index);
  EXPECT_EQ(Bytes(block.begin(), block.end()), payload_);
}

TEST_P(HostileSourceTest, GarbageClosesTheConnection) {
  RawSource source = Dial();
  EXPECT_FALSE(source.Closed());  // the challenge
  source.Send(Bytes(kHelloBytes, 0xff));
  EXPECT_TRUE(source.Closed());

  RawSource later = Dial();
  ASSERT_TRUE(later.Greet(Memory()).ok());
  later.Send(Bytes(kPageHeaderBytes, 0xff));
  EXPECT_TRUE(later.Closed());
}

TEST_P(HostileSourceTest, SilenceInTheHandshakeIsLimited) {
  Start(absl::Milliseconds(20));
  RawSource source = Dial();
  EXPECT_FALSE(source.Closed());  // the challenge
  EXPECT_TRUE(source.Closed());
}

TEST_P(HostileSourceTest, AReplayedPageIsRefused) {
  FillMemory();
  RawSource source = Dial();
  ASSERT_TRUE(source.Greet(Memory()).ok());
  PageHeader page = source.Page(kTransfer, kBlock, payload_);
  for (int i = 0; i < 2; ++i) {
    source.Send(source.Encoded(page));
    source.Send(Body());
  }
  EXPECT_EQ(source.Ack().refusal, std::nullopt);
  EXPECT_EQ(source.Ack().refusal, PageRefusal::kReplayedSequence);
}

TEST_P(HostileSourceTest, EachRefusalLeavesTheStreamInStep) {
  FillMemory();
  RawSource source = Dial();
  ASSERT_TRUE(source.Greet(Memory()).ok());
  auto refused = [&](auto change) {
    PageHeader page = source.Page(kTransfer, kBlock, payload_);
    change(page);
    source.Send(source.Encoded(page));
    source.Send(Body());
    return source.Ack().refusal;
  };
  EXPECT_EQ(refused([](PageHeader& h) { h.layout = LayoutId(1); }),
            PageRefusal::kWrongLayout);
  EXPECT_EQ(refused([](PageHeader& h) {
              h.layers = {2, 9};
            }),
            PageRefusal::kBadLayerRange);
  EXPECT_EQ(refused([](PageHeader& h) {
              h.layers = {0, 1};
            }),
            PageRefusal::kBadLength);
  EXPECT_EQ(refused([](PageHeader& h) { h.destination = Incarnation(1); }),
            PageRefusal::kWrongIncarnation);
  EXPECT_EQ(refused([](PageHeader& h) { h.block.index = -1; }),
            PageRefusal::kNotPrepared);
  EXPECT_EQ(refused([](PageHeader& h) { h.block.index = INT32_MAX; }),
            PageRefusal::kNotPrepared);
  EXPECT_EQ(refused([](PageHeader& h) { ++h.block.generation; }),
            PageRefusal::kStaleGeneration);
  EXPECT_TRUE(Untouched());
  EXPECT_EQ(refused([](PageHeader& h) { ++h.payload_checksum; }),
            PageRefusal::kBadPayloadChecksum);
  EXPECT_EQ(refused([](PageHeader&) {}), std::nullopt);
}

// The page is not what it was: told, and what lies there now.
TEST_P(HostileSourceTest, ASourceThatHangsUpMidPageLeavesNothingUsable) {
  {
    RawSource source = Dial();
    ASSERT_TRUE(source.Greet(Memory()).ok());
    source.Send(source.Encoded(source.Page(kTransfer, kBlock, payload_)));
    source.Send(absl::MakeConstSpan(Body()).first(Body().size() / 2));
  }
  absl::StatusOr<PageArrival> arrival = worker_->AwaitArrival();
  ASSERT_TRUE(arrival.ok());
  EXPECT_EQ(RefusalOf(arrival->status), PageRefusal::kTruncated);
  EXPECT_TRUE(arrival->landed);
  EXPECT_EQ(arrival->block, kBlock);
  EXPECT_EQ(arrival->checksum, BlockHasher(HashSecret("conformance"))
                                   .Checksum(worker_->Block(kBlock.index)));
  EXPECT_TRUE(worker_->AwaitFence(kTransfer));
  EXPECT_EQ(to().PollArrival(), std::nullopt);
}

TEST_P(HostileSourceTest, ARevokeDoesNotWaitForASourceThatStopsMidPage) {
  RawSource source = Dial();
  ASSERT_TRUE(source.Greet(Memory()).ok());
  Bytes body = Body();
  Bytes begun = source.Encoded(source.Page(kTransfer, kBlock, payload_));
  begun.insert(begun.end(), body.begin(), body.begin() + body.size() / 2);
  source.Send(begun);
  ASSERT_TRUE(worker_->AwaitFence(kTransfer));
  Bytes before(worker_->Block(kBlock.index).begin(),
               worker_->Block(kBlock.index).end());
  // The rest comes after the fence: dropped.
  source.Send(absl::MakeConstSpan(body).subspan(body.size() / 2));
  EXPECT_EQ(source.Ack().refusal, PageRefusal::kNotPrepared);
  EXPECT_EQ(Bytes(worker_->Block(kBlock.index).begin(),
                  worker_->Block(kBlock.index).end()),
            before);
}

class HostileTcpTest : public HostileSourceTest {};
INSTANTIATE_TEST_SUITE_P(Tcp, HostileTcpTest,
                         testing::Values(TransportKind::kTcp));

TEST_P(HostileTcpTest, APayloadThatNoPageCanHaveClosesTheConnection) {
  RawSource source = Dial();
  ASSERT_TRUE(source.Greet().ok());
  PageHeader page = source.Page(kTransfer, kBlock, payload_);
  page.payload_bytes = UINT64_MAX;
  source.Send(source.Encoded(page));
  EXPECT_TRUE(source.Closed());
}

class HostileShmTest : public HostileSourceTest {};
INSTANTIATE_TEST_SUITE_P(Shm, HostileShmTest,
                         testing::Values(TransportKind::kShm));

TEST_P(HostileShmTest, MemoryThatCouldVanishIsRefused) {
  RawSource none = Dial();
  EXPECT_EQ(none.Greet(-1).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(none.Closed());

  UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), 1 << 20), 0);
  EXPECT_EQ(Dial().Greet(unsealed.get()).code(),
            StatusCode::kFailedPrecondition);

  auto small = ArenaMemory::Create(100);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(Dial().Greet((*small)->arena().fd).code(),
            StatusCode::kFailedPrecondition);
}

TEST_P(HostileShmTest, ABlockOutsideTheMemoryClosesTheConnection) {
  for (int64_t index : {int64_t{2}, int64_t{-1}, int64_t{1} << 40}) {
    RawSource source = Dial();
    ASSERT_TRUE(source.Greet(Memory()).ok());
    source.Send(source.Encoded(source.Page(kTransfer, kBlock, payload_)));
    Bytes locator(8);
    StoreLittleEndian<int64_t>(index, locator.data());
    source.Send(locator);
    EXPECT_TRUE(source.Closed());
  }
  EXPECT_TRUE(Untouched());
  EXPECT_TRUE(worker_->AwaitFence(kTransfer));
}

}  // namespace
}  // namespace penstock
