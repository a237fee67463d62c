#include <utility>
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

// Where the receiver checks nothing, it waits for the transport's fence or for
// the source's word that nothing of its own is under way, whichever is first.
TEST_F(HandoffCancelTest, TheSourcesWordEndsAQuarantine) {
  SimWorkerOptions options;
  options.engine.prefill_chunk = kChunk;
  options.transports.emplace_back();
  options.transports[0].receiver_validates = false;
  options.transports[0].fence_time = absl::Seconds(100);
  Start(options);
  Leg p, d;
  StartPair(Request(1, 600, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return chunks_ >= 2; }));
  const BlockPool& pool = decode_->core().pool();
  EXPECT_GT(pool.counts().in_transfer, 0);
  decode_->core().CancelLeg(LegKind::kDecode, kTransfer);
  decode_->Settle();
  EXPECT_GT(pool.counts().quarantined, 0);
  EXPECT_TRUE(RunUntil([&] { return pool.counts().quarantined == 0; },
                       absl::Seconds(1)));
  EXPECT_EQ(pool.counts().in_transfer, 0);
}

// An offer that nobody answers ends with the lease.
TEST_F(HandoffCancelTest, ASilentDecodeWorkerIsNotWaitedForForEver) {
  network_.filter = [](const WorkerKey&, const WorkerKey&,
                       const HandoffMessage& message) {
    return !std::holds_alternative<Offer>(message);
  };
  Leg p;
  prefill_->core().StartLeg(LegKind::kPrefill,
                            LegFor(Request(1, 300, 8), *prefill_, "d"), &p);
  prefill_->Settle();
  const Instant start = clock_.Now();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  const absl::Duration lease = HandoffOptions().lease;
  EXPECT_GE(clock_.Now() - start, lease);
  EXPECT_LT(clock_.Now() - start, lease + absl::Seconds(1));
  ExpectClean(*prefill_);
}

// From the commit on nobody's lease counts, however long the answer takes.
TEST_F(HandoffCancelTest, AnAnswerOutlivesTheHandoffsLease) {
  SimWorkerOptions options;
  options.backend.step_cost = absl::Milliseconds(100);
  Start(options);
  const GenerateRequest request = Request(1, 100, 301);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok()) << *p.ended;
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(d.tokens.size(), 300u);
  EXPECT_GT(d.last->timings.decode, 2 * HandoffOptions().lease);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// Who comes first, the offer or the router's leg, is the network's choice.
TEST_F(HandoffCancelTest, TheLegMayComeAfterTheOffer) {
  const GenerateRequest request = Request(1, 300, 8);
  bool offered = false;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    offered |= std::holds_alternative<Offer>(message);
    return true;
  };
  Leg p, d;
  prefill_->core().StartLeg(LegKind::kPrefill, LegFor(request, *prefill_, "d"),
                            &p);
  prefill_->Settle();
  ASSERT_TRUE(RunUntil([&] { return offered; }));
  RunUntil([] { return false; }, absl::Milliseconds(100));
  EXPECT_FALSE(p.ended.has_value());
  decode_->core().StartLeg(LegKind::kDecode, LegFor(request, *decode_, "p"),
                           &d);
  decode_->Settle();
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(d.last->transfer.blocks_moved, 19u);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// A prefill worker that decode has forgotten is told so at once.
TEST_F(HandoffCancelTest, ATransferThatDecodeDoesNotKnowIsAborted) {
  Leg p, d;
  StartPair(Request(2, 40, 2), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  ExpectClean(*prefill_);
  std::vector<absl::StatusCode> aborts;
  network_.filter = [&](const WorkerKey& from, const WorkerKey& to,
                        const HandoffMessage& message) {
    EXPECT_EQ(from, decode_->key());
    EXPECT_EQ(to, prefill_->key());
    aborts.push_back(std::get<Abort>(message).code);
    return false;
  };
  auto say = [&](HandoffMessage message) {
    decode_->core().peer_listener()->OnPeerMessage(prefill_->key(),
                                                   std::move(message));
  };
  using Codes = std::vector<absl::StatusCode>;
  say(Renew{kTransfer, absl::Seconds(10)});
  say(Abort{kTransfer, absl::StatusCode::kCancelled, ""});
  say(FenceAck{kTransfer});
  EXPECT_EQ(aborts, Codes());
  say(ChunkDone{kTransfer, 0, 0, {}, {}});
  EXPECT_EQ(aborts, Codes{absl::StatusCode::kNotFound});
  Commit commit;
  commit.transfer = kTransfer;
  say(commit);
  EXPECT_EQ(aborts, Codes(2, absl::StatusCode::kNotFound));
  EXPECT_TRUE(decode_->core().idle());
}

}  // namespace
}  // namespace penstock
