#include "tests/contract/transport_fixture.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

void LandingGate::OnLanded(const PageHeader&,
                           const std::vector<absl::Span<uint8_t>>&) {
  std::unique_lock lock(mutex_);
  held_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return open_; });
}

void LandingGate::AwaitHeld() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return held_; });
}

void LandingGate::Open() {
  std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void TransportTest::SetUp() { Rebuild(SourceOptions(), DestinationOptions()); }

TransportWorker::Options TransportTest::SourceOptions() const {
  TransportWorker::Options options;
  options.kind = GetParam();
  options.name = "prefill-0";
  options.incarnation = Incarnation(11);
  return options;
}

TransportWorker::Options TransportTest::DestinationOptions() const {
  TransportWorker::Options options = SourceOptions();
  options.name = "decode-0";
  options.incarnation = Incarnation(22);
  return options;
}

std::unique_ptr<TransportWorker> TransportTest::Make(
    const TransportWorker::Options& options) {
  auto worker = TransportWorker::Create(options);
  CHECK(worker.ok()) << worker.status();
  return *std::move(worker);
}

void TransportTest::Rebuild(const TransportWorker::Options& source,
                            const TransportWorker::Options& destination) {
  source_.reset();
  destination_.reset();
  source_ = Make(source);
  destination_ = Make(destination);
  ASSERT_TRUE(from().Connect(destination_->key(), to().Describe()).ok());
}

void TransportTest::Prepare(int count) {
  std::vector<BlockRef> blocks;
  for (BlockIndex i = 0; i < count; ++i) blocks.push_back({i, kGeneration});
  to().PrepareReceive(kTransfer, blocks);
}

PageWrite TransportTest::Whole(BlockIndex block, uint32_t generation) {
  return {block, {block, generation}, {0, SmallLayout().layers}};
}

PageWrite TransportTest::Layers(BlockIndex block, LayerRange layers) {
  return {block, {block, kGeneration}, layers};
}

PostId TransportTest::PostAll(std::vector<PageWrite> writes,
                              TransferId transfer) {
  return from().Post(destination_->key(), transfer, std::move(writes),
                     Instant::Infinite());
}

PostCompletion TransportTest::Completion() {
  auto completion = source_->AwaitCompletion();
  CHECK(completion.ok()) << completion.status();
  return *std::move(completion);
}

PageArrival TransportTest::Arrival() {
  auto arrival = destination_->AwaitArrival();
  CHECK(arrival.ok()) << arrival.status();
  return *std::move(arrival);
}

absl::Status TransportTest::Send(std::vector<PageWrite> writes,
                                 TransferId transfer) {
  PostId post = PostAll(std::move(writes), transfer);
  PostCompletion completion = Completion();
  EXPECT_EQ(completion.post, post);
  EXPECT_EQ(completion.transfer, transfer);
  return completion.status;
}

std::string KindName(const testing::TestParamInfo<TransportKind>& info) {
  return TransportName(info.param);
}

}  // namespace penstock
