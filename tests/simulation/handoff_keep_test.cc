#include <algorithm>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

constexpr int kPrompt = 90;
constexpr int kTokens = 12;

// What a leg that failed leaves for the request's next attempt.
class HandoffKeepTest : public HandoffFixture {
 protected:
  void SetUp() override {
    options_.engine.prefill_chunk = 32;
    Start(options_);
  }

  static int KeptTokens(const Leg& leg) {
    return ErrorInfoOf(*leg.ended).kept_tokens;
  }

  static std::vector<TokenId> Join(std::vector<TokenId> first,
                                   const std::vector<TokenId>& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
  }

  // Both legs of a request, up to some moment.
  void StartAndRunFor(const GenerateRequest& request, absl::Duration time,
                      Leg& p, Leg& d) {
    StartPair(request, p, d);
    const Instant until = clock_.Now() + time;
    RunUntil([&] { return timers_.NextDeadline() > until; });
  }

  SimWorkerOptions options_;
};

TEST_F(HandoffKeepTest, NothingIsRecomputedWhenDecodeDies) {
  int partly = 0, whole = 0;
  for (int when = 0; when < 40; ++when) {
    const GenerateRequest request = Request(300 + when, kPrompt, kTokens);
    Leg p, d, p2, d2;
    StartAndRunFor(request, absl::Microseconds(500) * when, p, d);
    network_.Kill("d");
    decode_.reset();
    ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
    const int kept = KeptTokens(p);
    // The step in flight, and posts to the dead, end first.
    RunUntil([&] { return prefill_->core().idle(); });
    EXPECT_EQ(prefill_->core().keeps(), kept > 0);
    partly += kept > 0 && kept < kPrompt;
    whole += kept == kPrompt;
    const auto has = Join(p.tokens, d.tokens);
    // Its death is known before it is back.
    RunUntil([] { return false; }, absl::Milliseconds(2));
    decode_ = Make("d", 2000 + when, {false, true}, options_);
    const int64_t rows_before = prefill_->backend().rows_computed();
    StartPair(request, *prefill_, *decode_, 2, has, p2, d2);
    ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
    EXPECT_TRUE(p2.ended->ok() && d2.ended->ok()) << *p2.ended << *d2.ended;
    EXPECT_EQ(Join(Join(has, p2.tokens), d2.tokens),
              SimModel::Generate(request.prompt, kTokens, request.id.value()));
    const int history = kPrompt + static_cast<int>(has.size());
    if (kept > 0) {
      EXPECT_EQ(prefill_->backend().rows_computed() - rows_before,
                history - kept);
    }
    EXPECT_EQ(d2.last->transfer.decode_prompt_tokens, 0u);
    EXPECT_FALSE(prefill_->core().keeps());
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
  EXPECT_GT(partly, 0);
  EXPECT_GT(whole, 0);
}

TEST_F(HandoffKeepTest, OnlyTheTailIsComputedWhenPrefillDies) {
  int partly = 0;
  for (int when = 0; when < 40; ++when) {
    const GenerateRequest request = Request(200 + when, kPrompt, kTokens);
    Leg p, d, again;
    StartAndRunFor(request, absl::Microseconds(500) * when, p, d);
    network_.Kill("p");
    prefill_.reset();
    ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
    prefill_ = Make("p", 1000 + when, {true, false}, options_);
    if (d.ended->ok()) continue;
    const int kept = KeptTokens(d);
    // After the fence.
    RunUntil([&] { return decode_->core().keeps(); }, absl::Milliseconds(1));
    EXPECT_EQ(decode_->core().keeps(), kept > 0);
    partly += kept > 0 && kept < kPrompt;
    EXPECT_TRUE(kept % kBlockTokens == 0 || kept == kPrompt) << kept;
    const auto has = p.tokens;
    const int64_t rows_before = decode_->backend().rows_computed();
    StartAlone(request, *decode_, 2, {has}, again);
    ASSERT_TRUE(RunUntil([&] { return again.ended.has_value(); }));
    EXPECT_TRUE(again.ended->ok()) << *again.ended;
    EXPECT_EQ(Join(has, again.tokens),
              SimModel::Generate(request.prompt, kTokens, request.id.value()));
    // All but the last token are fed back.
    const int rows = kPrompt - kept + kTokens - 1;
    EXPECT_EQ(decode_->backend().rows_computed() - rows_before,
              kept == kPrompt && has.empty() ? rows + 1 : rows);
    ExpectClean(*decode_);
  }
  EXPECT_GT(partly, 0);
}

TEST_F(HandoffKeepTest, AnotherPrefillWorkerSendsOnlyWhatIsMissing) {
  int saved = 0;
  for (int when = 8; when < 24; ++when) {
    const GenerateRequest request = Request(400 + when, kPrompt, kTokens);
    Leg p, d, p2, d2;
    StartAndRunFor(request, absl::Microseconds(500) * when, p, d);
    network_.Kill("p");
    prefill_.reset();
    ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
    prefill_ = Make("p", 1000 + when, {true, false}, options_);
    if (d.ended->ok()) continue;
    const int kept = KeptTokens(d);
    saved += kept > 0;
    StartPair(request, *prefill_, *decode_, 2, p.tokens, p2, d2);
    ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
    EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
    EXPECT_EQ(Join(Join(p.tokens, p2.tokens), d2.tokens),
              SimModel::Generate(request.prompt, kTokens, request.id.value()));
    EXPECT_EQ(d2.last->transfer.blocks_moved,
              static_cast<uint64_t>(
                  BlocksFor(kPrompt + static_cast<int>(p.tokens.size())) -
                  kept / kBlockTokens));
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
  EXPECT_GT(saved, 0);
}

// Decode hears nothing any more, and says nothing.
TEST_F(HandoffKeepTest, ASilentDecodeWorkerLeavesTheKvAtPrefill) {
  network_.filter = [](const WorkerKey& from, const WorkerKey&,
                       const HandoffMessage& message) {
    return from.name != "d" || std::holds_alternative<Credit>(message) ||
           std::holds_alternative<Grant>(message);
  };
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  Leg p, d, p2, d2;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }, absl::Seconds(12)));
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kTransferFailed);
  EXPECT_EQ(KeptTokens(p), kPrompt);
  other_ = Make("d2", 3, {false, true}, options_);
  StartPair(request, *prefill_, *other_, 2, p.tokens, p2, d2);
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_EQ(Join(Join(p.tokens, p2.tokens), d2.tokens),
            SimModel::Generate(request.prompt, kTokens, 1));
  EXPECT_EQ(prefill_->backend().rows_computed(), kPrompt + 1);
}

TEST_F(HandoffKeepTest, NothingIsKeptOfWhatWasGivenUp) {
  for (int when = 0; when < 40; ++when) {
    const GenerateRequest request = Request(500 + when, kPrompt, kTokens);
    Leg p, d;
    StartAndRunFor(request, absl::Microseconds(500) * when, p, d);
    const TransferId id{request.id, AttemptId(1)};
    // Either may hear of it first.
    if (when % 2 == 0) {
      decode_->core().CancelLeg(LegKind::kDecode, id);
    } else {
      prefill_->core().CancelLeg(LegKind::kPrefill, id);
    }
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    EXPECT_FALSE(prefill_->core().keeps()) << when;
    EXPECT_FALSE(decode_->core().keeps()) << when;
    ExpectClean(*prefill_);
    ExpectClean(*decode_);
  }
}

TEST_F(HandoffKeepTest, ADeadlineKeepsNothing) {
  GenerateRequest request = Request(1, kPrompt, 2000);
  request.timeout = absl::Milliseconds(5);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_FALSE(prefill_->core().keeps());
  EXPECT_FALSE(decode_->core().keeps());
}

// A prompt that fills the pool gets it.
TEST_F(HandoffKeepTest, WhatIsKeptGivesWayToWhatRuns) {
  options_.blocks = 8;
  Start(options_);
  const GenerateRequest lost = Request(1, kPrompt, kTokens);
  Leg p, d, p2, d2;
  StartPair(lost, p, d);
  RunUntil([&] { return !p.tokens.empty(); });
  network_.Kill("d");
  decode_.reset();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  EXPECT_EQ(KeptTokens(p), kPrompt);
  RunUntil([&] { return prefill_->core().idle(); });
  EXPECT_EQ(prefill_->core().Load().free_blocks, 8);
  decode_ = Make("d", 20, {false, true}, options_);
  const GenerateRequest next = Request(2, 120, 4);
  StartPair(next, p2, d2);
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }, absl::Seconds(1)));
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_FALSE(prefill_->core().keeps());
  ExpectClean(*prefill_);
}

// The next leg waits longer for credit than the lease is long.
TEST_F(HandoffKeepTest, AWaitingLegRenewsTheLease) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  Leg p, d, busy, p2, d2;
  StartPair(request, p, d);
  RunUntil([&] { return !p.tokens.empty(); });
  network_.Kill("d");
  decode_.reset();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  SimWorkerOptions slow = options_;
  slow.blocks = 10;
  slow.backend.step_cost = absl::Milliseconds(200);
  decode_ = Make("d", 20, {false, true}, slow);
  StartAlone(Request(2, 60, 90), *decode_, 1, {}, busy);
  // It holds 9 of the 10 blocks before its last 10 tokens.
  RunUntil([&] { return busy.tokens.size() > 35; });
  StartPair(request, *prefill_, *decode_, 2, p.tokens, p2, d2);
  RunUntil([&] { return p2.ended.has_value(); }, absl::Seconds(10.5));
  EXPECT_FALSE(p2.ended.has_value());
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_EQ(prefill_->backend().rows_computed(), kPrompt + 1);
}

// Both roles in one worker: prefill's side keeps, nothing moves.
TEST_F(HandoffKeepTest, OneWorkerWithBothRolesTakesItsOwn) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  Leg p, d, p2, d2;
  prefill_ = Make("b", 9, {true, true}, options_);
  StartPair(request, *prefill_, *decode_, 1, {}, p, d);
  RunUntil([&] { return !p.tokens.empty(); });
  network_.Kill("d");
  decode_.reset();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  RunUntil([&] { return prefill_->core().idle(); });
  StartPair(request, *prefill_, *prefill_, 2, p.tokens, p2, d2);
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_EQ(Join(Join(p.tokens, p2.tokens), d2.tokens),
            SimModel::Generate(request.prompt, kTokens, 1));
  EXPECT_EQ(prefill_->backend().rows_computed(), kPrompt + kTokens - 1);
  ExpectClean(*prefill_);
}

// Prompts of whole blocks, of which nothing was delivered: the last block's
// pages are shown to others, so it is computed again.
TEST_F(HandoffKeepTest, DeferredAnswersBeginAgainFromTheKeptPrompt) {
  GenerateRequest request = Request(1, 96, 6);
  request.best_of = 3;
  Leg p, d, p2, d2, truth;
  StartPair(request, p, d);
  RunUntil([&] { return prefill_->backend().rows_computed() == 96; });
  network_.Kill("d");
  decode_.reset();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  EXPECT_EQ(KeptTokens(p), 96);
  decode_ = Make("d", 20, {false, true}, options_);
  StartPair(request, *prefill_, *decode_, 2, {}, p2, d2);
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_EQ(prefill_->backend().rows_computed(), 96 + 16);
  StartAlone(request, *decode_, 3, {}, truth);
  ASSERT_TRUE(RunUntil([&] { return truth.ended.has_value(); }));
  EXPECT_EQ(d2.tokens, truth.tokens);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

}  // namespace
}  // namespace penstock
