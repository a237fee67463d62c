#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

// What decode believes of an offer and a commit, which another process sent.
class HandoffCommitTest : public HandoffFixture {
 protected:
  // Hands one request off, with `change` made to its manifest on the way.
  void HandOff(const std::function<void(KvManifest&)>& change, Leg& d) {
    Start({});
    network_.filter = [&](const WorkerKey& from, const WorkerKey&,
                          const HandoffMessage& message) {
      if (!std::holds_alternative<Commit>(message)) return true;
      Commit commit = std::get<Commit>(message);
      change(commit.manifest);
      timers_.Schedule(
          clock_.Now() + absl::Milliseconds(1), [this, from, commit] {
            decode_->core().peer_listener()->OnPeerMessage(from, commit);
            decode_->Settle();
          });
      return false;
    };
    Leg p;
    StartPair(Request(1, 90, 8), p, d);
    EXPECT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
};

TEST_F(HandoffCommitTest, AManifestThatContradictsWhatIsThereIsRefused) {
  Leg plain;
  HandOff([](KvManifest&) {}, plain);
  EXPECT_TRUE(plain.ended->ok()) << *plain.ended;
  EXPECT_EQ(plain.tokens.size(), 7u);
  const std::function<void(KvManifest&)> kWrong[] = {
      [](KvManifest& m) { m.layout = LayoutId(m.layout.value() + 1); },
      [](KvManifest& m) { m.content = ContentId(m.content.value() + 1); },
      [](KvManifest& m) { m.numerics = NumericsId(m.numerics.value() + 1); },
      [](KvManifest& m) { ++m.prompt_tokens; },
      [](KvManifest& m) { m.block_hashes.pop_back(); },
      [](KvManifest& m) { std::swap(m.block_hashes[0], m.block_hashes[1]); },
      [](KvManifest& m) { ++m.chunks; },
      [](KvManifest& m) { m.moved.pop_back(); },
      [](KvManifest& m) { m.moved[0].prompt_block = -1; },
      [](KvManifest& m) { m.moved[0].prompt_block = 6; },
      [](KvManifest& m) { ++m.moved[0].checksum; },
  };
  for (const auto& change : kWrong) {
    Leg d;
    HandOff(change, d);
    EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kTransferFailed)
        << *d.ended << " " << &change - kWrong;
    EXPECT_TRUE(d.tokens.empty());
  }
}

TEST_F(HandoffCommitTest, AnOfferOfAnotherWorldIsRefusedWithTheWayOut) {
  struct Case {
    std::function<void(Offer&)> change;
    const char* says;
  };
  const Case kCases[] = {
      {[](Offer& o) { o.layout = LayoutId(o.layout.value() + 1); },
       "give both one --kv-type"},
      {[](Offer& o) { o.content = ContentId(o.content.value() + 1); },
       "model of p differs"},
      {[](Offer& o) { o.numerics = NumericsId(o.numerics.value() + 1); },
       "give both one --precision"},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.says);
    Start({});
    network_.filter = [&](const WorkerKey& from, const WorkerKey&,
                          const HandoffMessage& message) {
      if (!std::holds_alternative<Offer>(message)) return true;
      Offer offer = std::get<Offer>(message);
      one.change(offer);
      timers_.Schedule(
          clock_.Now() + absl::Milliseconds(1), [this, from, offer] {
            decode_->core().peer_listener()->OnPeerMessage(from, offer);
            decode_->Settle();
          });
      return false;
    };
    Leg p, d;
    StartPair(Request(1, 90, 8), p, d);
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kIncompatibleWorker);
    EXPECT_NE(d.ended->message().find(one.says), std::string::npos) << *d.ended;
    EXPECT_TRUE(d.tokens.empty());
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
}

// The acknowledgement may have been lost.
TEST_F(HandoffCommitTest, ARepeatedCommitIsAcknowledgedAgain) {
  std::optional<Commit> sent;
  int acks = 0;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    if (auto* commit = std::get_if<Commit>(&message)) sent = *commit;
    acks += std::holds_alternative<CommitAck>(message);
    return true;
  };
  const GenerateRequest request = Request(1, 90, 40);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return d.tokens.size() >= 5; }));
  EXPECT_EQ(acks, 1);
  decode_->core().peer_listener()->OnPeerMessage(prefill_->key(), *sent);
  EXPECT_EQ(acks, 2);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(d.tokens, After(SimModel::Generate(request.prompt, 40, 1), 1));
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffCommitTest, OffersBeyondTheMostAreRejected) {
  SimWorkerOptions options;
  options.handoff.max_transfers = 2;
  Start(options);
  Leg legs[3];
  for (int i = 0; i < 3; ++i) {
    prefill_->core().StartLeg(LegKind::kPrefill,
                              LegFor(Request(1 + i, 40, 8), *prefill_, "d"),
                              &legs[i]);
  }
  prefill_->Settle();
  EXPECT_TRUE(
      RunUntil([&] { return legs[2].ended.has_value(); }, absl::Seconds(1)));
  EXPECT_EQ(ErrorInfoOf(*legs[2].ended).reason, ErrorReason::kQueueFull);
  EXPECT_FALSE(legs[0].ended.has_value());
  EXPECT_FALSE(legs[1].ended.has_value());
}

TEST_F(HandoffCommitTest, ChunksThatCannotBeAreRefused) {
  // 90 tokens: six blocks, and so no more chunks.
  const std::pair<int, bool> kNumbers[] = {{-1, true}, {6, true}, {5, false}};
  for (const auto& [number, refused] : kNumbers) {
    Start({});
    Leg p, d;
    StartPair(Request(1, 90, 8), p, d);
    ASSERT_TRUE(RunUntil([&] { return d.accepted; }));
    decode_->core().peer_listener()->OnPeerMessage(
        prefill_->key(),
        ChunkDone{{RequestId(1), AttemptId(1)}, number, 0, {}, {}});
    decode_->Settle();
    EXPECT_EQ(d.ended.has_value(), refused) << number;
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    // A chunk too many: the manifest says otherwise.
    EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kTransferFailed);
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
}

TEST_F(HandoffCommitTest, SharedBlocksComeInOrder) {
  for (int first : {0, 2}) {
    SimWorkerOptions options;
    options.engine.prefill_chunk = 16;
    other_.reset();
    other_ = Make("b", 5 + first, {true, true}, options);
    Leg p, d;
    StartPair(Request(1, 90, 8), *other_, *other_, 1, {}, p, d);
    // One block is there, and so is the number of the next.
    const BlockPool& pool = other_->core().pool();
    ASSERT_TRUE(RunUntil([&] { return pool.counts().active == 2; }));
    BlockRef live;
    for (int index = 0; index < pool.total(); ++index) {
      for (uint32_t generation = 0; generation < 4; ++generation) {
        const BlockRef ref{index, generation};
        if (pool.IsLive(ref) && pool.StateOf(index) == BlockState::kActive) {
          live = ref;
        }
      }
    }
    ASSERT_GE(live.index, 0);
    other_->core().peer_listener()->OnPeerMessage(
        other_->key(),
        ChunkDone{{RequestId(1), AttemptId(1)}, 5, first, {}, {live}});
    other_->Settle();
    ASSERT_TRUE(d.ended.has_value()) << first;
    EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kTransferFailed);
    ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
    EXPECT_TRUE(d.tokens.empty());
    ExpectClean(*other_);
  }
}

}  // namespace
}  // namespace penstock
