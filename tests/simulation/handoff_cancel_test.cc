#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

constexpr int kChunk = 32;
const TransferId kTransfer{RequestId(1), AttemptId(1)};

// What a cancel does in each state of a handoff.
class HandoffCancelTest : public HandoffFixture {
 protected:
  void SetUp() override {
    SimWorkerOptions options;
    options.engine.prefill_chunk = kChunk;
    Start(options);
    network_.filter = [this](const WorkerKey&, const WorkerKey&,
                             const HandoffMessage& message) {
      chunks_ += std::holds_alternative<ChunkDone>(message);
      commits_ += std::holds_alternative<Commit>(message);
      return true;
    };
  }

  // A leg that is cancelled waits for nothing.
  void CancelPrefill(const Leg& p) {
    prefill_->core().CancelLeg(LegKind::kPrefill, kTransfer);
    ASSERT_TRUE(p.ended.has_value());
    EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kCancelled);
    prefill_->Settle();
  }

  int chunks_ = 0;
  int commits_ = 0;
};

TEST_F(HandoffCancelTest, QueuedComputesNothing) {
  Leg p;
  prefill_->core().StartLeg(LegKind::kPrefill,
                            LegFor(Request(1, 300, 8), *prefill_, "d"), &p);
  prefill_->Settle();
  const Instant until = clock_.Now() + absl::Seconds(1);
  RunUntil([&] { return timers_.NextDeadline() > until; });
  CancelPrefill(p);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
  EXPECT_EQ(prefill_->backend().rows_computed(), 0);
}

TEST_F(HandoffCancelTest, ComputingStopsAtTheNextChunk) {
  Leg p, d;
  StartPair(Request(1, 300, 8), p, d);
  RunUntil([&] { return prefill_->backend().rows_computed() >= 2 * kChunk; });
  CancelPrefill(p);
  const int chunks = chunks_;
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
  EXPECT_LE(prefill_->backend().rows_computed(), 3 * kChunk);
  EXPECT_EQ(chunks_, chunks) << "nothing is announced any more";
  EXPECT_TRUE(d.ended.has_value());
  EXPECT_TRUE(d.tokens.empty());
}

TEST_F(HandoffCancelTest, SendingEndsBeforeTheCommit) {
  Leg p, d;
  StartPair(Request(1, 300, 8), p, d);
  RunUntil([&] { return chunks_ > 0; });
  decode_->core().CancelLeg(LegKind::kDecode, kTransfer);
  EXPECT_TRUE(d.ended.has_value());
  decode_->Settle();
  // One round trip later prefill has heard of it.
  ASSERT_TRUE(
      RunUntil([&] { return p.ended.has_value(); }, absl::Milliseconds(5)));
  EXPECT_LT(prefill_->backend().rows_computed(), 300);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
  EXPECT_EQ(commits_, 0);
}

// Decode has everything: what becomes of prefill's leg does not matter to it.
TEST_F(HandoffCancelTest, CommittedConcernsDecodeOnly) {
  const GenerateRequest request = Request(1, 300, 8);
  Leg p, d;
  StartPair(request, p, d);
  RunUntil([&] { return commits_ > 0; });
  ASSERT_FALSE(p.ended.has_value());
  CancelPrefill(p);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(d.tokens, After(SimModel::Generate(request.prompt, 8, 1), 1));
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

}  // namespace
}  // namespace penstock
