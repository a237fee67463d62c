#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/contract/transport_worker.h"

namespace penstock {

// Holds the first page that lands until opened; shows when it is held.
class LandingGate : public PageFaults {
 public:
  void OnLanded(const PageHeader&,
                const std::vector<absl::Span<uint8_t>>&) override;
  // Waits until a page is held.
  void AwaitHeld();
  void Open();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool open_ = false;
};

// A source and a destination of one kind of transport, connected.
class TransportTest : public testing::TestWithParam<TransportKind> {
 protected:
  static constexpr TransferId kTransfer{RequestId(1), AttemptId(1)};
  static constexpr uint32_t kGeneration = 7;

  void SetUp() override;

  TransportWorker::Options SourceOptions() const;
  TransportWorker::Options DestinationOptions() const;
  // CHECKs that it works.
  static std::unique_ptr<TransportWorker> Make(
      const TransportWorker::Options& options);
  // Makes another pair, with other options, and connects it.
  void Rebuild(const TransportWorker::Options& source,
               const TransportWorker::Options& destination);

  KvTransport& from() { return source_->transport(); }
  KvTransport& to() { return destination_->transport(); }

  // Opens blocks 0..count-1 to kTransfer.
  void Prepare(int count);
  // A write of a whole block to the block of the same index.
  static PageWrite Whole(BlockIndex block, uint32_t generation = kGeneration);
  static PageWrite Layers(BlockIndex block, LayerRange layers);
  PostId PostAll(std::vector<PageWrite> writes,
                 TransferId transfer = kTransfer);
  PostCompletion Completion();
  PageArrival Arrival();
  // Posts and waits: the status of the post.
  absl::Status Send(std::vector<PageWrite> writes,
                    TransferId transfer = kTransfer);

  std::unique_ptr<TransportWorker> source_;
  std::unique_ptr<TransportWorker> destination_;
};

std::string KindName(const testing::TestParamInfo<TransportKind>& info);

}  // namespace penstock
