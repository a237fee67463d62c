#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

class HandoffFaultTest : public HandoffFixture {};

TEST_F(HandoffFaultTest, CancelAtAnyMomentLeavesNothingBehind) {
  // Each run cancels one virtual half-millisecond later than the one before,
  // so that every state sees one.
  for (int when = 0; when < 120; ++when) {
    GenerateRequest request = Request(100 + when, 90, 8);
    if (when % 3 == 1) request.n = 4;
    if (when % 3 == 2) request.beam.width = 4;
    Leg p, d;
    StartPair(request, p, d);
    Instant at = clock_.Now() + absl::Microseconds(500) * when;
    RunUntil([&] { return timers_.NextDeadline() > at; });
    TransferId id{RequestId(100 + when), AttemptId(1)};
    decode_->core().CancelLeg(LegKind::kDecode, id);
    prefill_->core().CancelLeg(LegKind::kPrefill, id);
    EXPECT_TRUE(p.ended && d.ended);
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
}

TEST_F(HandoffFaultTest, ACancelledLegEndsTheOtherOne) {
  Leg p, d;
  StartPair(Request(1, 200, 8), p, d);
  RunUntil([&] { return d.accepted; });
  decode_->core().CancelLeg(LegKind::kDecode, {RequestId(1), AttemptId(1)});
  EXPECT_TRUE(
      RunUntil([&] { return p.ended.has_value(); }, absl::Milliseconds(50)));
  EXPECT_FALSE(p.ended->ok());
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffFaultTest, PrefillDeathBeforeCommitEndsTheDecodeLeg) {
  for (int when = 0; when < 40; ++when) {
    Leg p, d;
    StartPair(Request(200 + when, 90, 8), p, d);
    Instant at = clock_.Now() + absl::Microseconds(500) * when;
    RunUntil([&] { return timers_.NextDeadline() > at; });
    network_.Kill("p");
    prefill_.reset();
    ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
    ExpectClean(*decode_);
    prefill_ = Make("p", 1000 + when, {true, false}, {});
  }
}

TEST_F(HandoffFaultTest, DecodeDeathEndsThePrefillLeg) {
  for (int when = 0; when < 40; ++when) {
    Leg p, d;
    StartPair(Request(300 + when, 90, 8), p, d);
    Instant at = clock_.Now() + absl::Microseconds(500) * when;
    RunUntil([&] { return timers_.NextDeadline() > at; });
    network_.Kill("d");
    decode_.reset();
    ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
    ExpectClean(*prefill_);
    decode_ = Make("d", 2000 + when, {false, true}, {});
  }
}

TEST_F(HandoffFaultTest, ASilentPeerLosesItsLease) {
  network_.filter = [](const WorkerKey& from, const WorkerKey&,
                       const HandoffMessage& message) {
    return from.name != "p" || std::holds_alternative<Offer>(message);
  };
  Leg p, d;
  StartPair(Request(1, 90, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }, absl::Seconds(12)));
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kTransferFailed);
  ExpectClean(*decode_);
  ExpectClean(*prefill_);
}

TEST_F(HandoffFaultTest, AChangedPageIsSentAgain) {
  int flips = 1;
  network_.on_page = [&](TransferId, absl::Span<uint8_t> page) {
    if (flips-- > 0) page[3] ^= 1;
  };
  GenerateRequest request = Request(1, 90, 8);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 8, 1));
}

TEST_F(HandoffFaultTest, PagesThatNeverArriveWholeFailTheTransfer) {
  network_.on_page = [](TransferId, absl::Span<uint8_t> page) { page[3] ^= 1; };
  Leg p, d;
  StartPair(Request(1, 90, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kTransferFailed);
  EXPECT_TRUE(d.tokens.empty());
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffFaultTest, AChunkThatFailsGoesOnOverAnotherTransport) {
  SimWorkerOptions options;
  options.engine.prefill_chunk = kBlockTokens;
  options.transports = {TransportKind::kShm, TransportKind::kTcp};
  Start(options);
  // The first transport carries the first chunk and then breaks for good.
  std::map<TransportKind, int> posts;
  network_.on_post = [&](const WorkerKey&, TransportKind kind) {
    return ++posts[kind] > 1 && kind == TransportKind::kShm
               ? absl::UnavailableError("broken")
               : absl::OkStatus();
  };
  GenerateRequest request = Request(1, 90, 8);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 8, 1));
  // Six blocks in chunks: one went over shm, the rest over tcp.
  EXPECT_EQ(d.last->transfer.transport, "tcp");
  EXPECT_EQ(d.last->transfer.blocks_moved, 6u);
  EXPECT_GE(posts[TransportKind::kTcp], 2);
  EXPECT_LE(posts[TransportKind::kShm], 3);  // once it failed it is avoided
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffFaultTest, AttemptsAreBoundedOverAllTransports) {
  SimWorkerOptions options;
  options.transports = {TransportKind::kShm, TransportKind::kTcp};
  options.handoff.max_chunk_attempts = 5;
  Start(options);
  std::map<TransportKind, int> posts;
  network_.on_post = [&](const WorkerKey&, TransportKind kind) {
    ++posts[kind];
    return absl::UnavailableError("broken");
  };
  Leg p, d;
  StartPair(Request(1, 90, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kTransferFailed);
  EXPECT_EQ(posts[TransportKind::kShm], 3);
  EXPECT_EQ(posts[TransportKind::kTcp], 2);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// A page that is overwritten after it was verified does not count any more.
TEST_F(HandoffFaultTest, APageSpoiledAfterItsChunkIsSentAgain) {
  SimWorkerOptions options;
  options.engine.prefill_chunk = kBlockTokens;
  Start(options);
  TransferId id{RequestId(1), AttemptId(1)};
  std::optional<BlockRef> first;
  int nacks = 0;
  bool spoiled = false;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    if (auto* grant = std::get_if<Grant>(&message)) first = grant->blocks[0];
    if (std::holds_alternative<ChunkNack>(message)) ++nacks;
    if (auto* done = std::get_if<ChunkDone>(&message);
        done != nullptr && done->chunk == 2 && !spoiled) {
      spoiled = true;  // chunk 0 is verified by now
      network_.SpoilPage(decode_->key(), TransportKind::kTcp, id, *first);
    }
    return true;
  };
  GenerateRequest request = Request(1, 90, 8);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(spoiled);
  EXPECT_EQ(nacks, 1);
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 8, 1));
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffFaultTest, AChunkWhosePagesNeverCameIsAskedForAgain) {
  int nacks = 0;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    nacks += std::holds_alternative<ChunkNack>(message);
    if (!std::holds_alternative<Grant>(message)) return true;
    // The source never gets to post, but says that it did.
    timers_.Schedule(clock_.Now() + absl::Milliseconds(2), [this] {
      decode_->core().peer_listener()->OnPeerMessage(
          prefill_->key(),
          ChunkDone{{RequestId(1), AttemptId(1)}, 0, 0, {1, 2}, {}});
      decode_->Settle();
    });
    return false;
  };
  Leg p, d;
  StartPair(Request(1, 90, 8), p, d);
  EXPECT_TRUE(RunUntil([&] { return nacks == 1; }, absl::Seconds(2)));
  // Once: the next word is the source's.
  EXPECT_FALSE(RunUntil([&] { return nacks > 1; }, absl::Seconds(3)));
  EXPECT_FALSE(d.ended.has_value());
}

TEST_F(HandoffFaultTest, RepeatedMessagesChangeNothing) {
  // Many small chunks, so that repeats come while others are still to come.
  SimWorkerOptions options;
  options.engine.prefill_chunk = kBlockTokens;
  Start(options);
  network_.filter = [this](const WorkerKey& from, const WorkerKey& to,
                           const HandoffMessage& message) {
    // The same message once more, a little later, straight to the receiver.
    timers_.Schedule(
        clock_.Now() + absl::Milliseconds(3), [this, from, to, message] {
          SimWorker* target = to.name == "p" ? prefill_.get() : decode_.get();

          target->core().peer_listener()->OnPeerMessage(from, message);
          target->Settle();
        });
    return true;
  };
  GenerateRequest request = Request(1, 90, 8);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 8, 1));
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffFaultTest, TheDeadlineIsKeptWithinOneStep) {
  GenerateRequest request = Request(1, 90, 2000);
  request.timeout = absl::Milliseconds(40);
  SimWorkerOptions options;
  options.blocks = 256;
  Start(options);
  Instant begin = clock_.Now();
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kDeadline);
  EXPECT_LE(clock_.Now() - begin, absl::Milliseconds(45));
  ExpectClean(*decode_);
}

}  // namespace
}  // namespace penstock
