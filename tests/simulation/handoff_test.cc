#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

class HandoffTest : public HandoffFixture {};

TEST_F(HandoffTest, MovesEveryPageAndDecodesTheSameTokens) {
  GenerateRequest request = Request(1, 100, 20);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok()) << *p.ended;
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(p.first_index, 0);
  EXPECT_EQ(d.first_index, 1);
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 20, 1));
  ASSERT_TRUE(d.last.has_value());
  EXPECT_EQ(d.last->finish, FinishReason::kLength);
  EXPECT_EQ(d.last->usage.prompt_tokens, 100);
  EXPECT_EQ(d.last->usage.completion_tokens, 20);
  // 100 tokens lie in 7 blocks; decode computed none of the prompt.
  EXPECT_EQ(d.last->transfer.blocks_moved, 7u);
  EXPECT_EQ(d.last->transfer.bytes_moved, 7 * SimModel::Layout().block_bytes());
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 0u);
  EXPECT_EQ(d.last->transfer.transport, "tcp");
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// Four answers over one prompt: its pages travel once, and each answer has its
// own stream of draws.
TEST_F(HandoffTest, SamplesShareOneTransfer) {
  GenerateRequest request = Request(1, 100, 20);
  request.n = 4;
  Leg p, d;
  StartPair(request, p, d);
  int most_active = 0;
  ASSERT_TRUE(RunUntil([&] {
    most_active = std::max(most_active, decode_->core().pool().counts().active);
    return p.ended && d.ended;
  }));
  EXPECT_TRUE(p.ended->ok()) << *p.ended;
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  for (int sample = 0; sample < 4; ++sample) {
    std::vector<TokenId> all = p.samples[sample];
    EXPECT_EQ(all.size(), 1u);
    all.insert(all.end(), d.samples[sample].begin(), d.samples[sample].end());
    EXPECT_EQ(all, SimModel::Generate(request.prompt, 20, 1, sample));
  }
  EXPECT_NE(d.samples[0], d.samples[1]);
  EXPECT_EQ(d.last->usage.completion_tokens, 80);
  EXPECT_EQ(d.last->transfer.blocks_moved, 7u);
  EXPECT_EQ(d.last->transfer.bytes_moved, 7 * SimModel::Layout().block_bytes());
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 0u);
  // 6 full blocks of the prompt, and 4 tails that end in the second block.
  EXPECT_EQ(most_active, 6 + 4 * 2);
  EXPECT_EQ(prefill_->backend().rows_computed(), 100);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, SamplesOfALocalPromptAreTheSame) {
  GenerateRequest request = Request(1, 100, 20);
  request.n = 4;
  Leg d;
  decode_->core().StartLeg(LegKind::kDecode, LegFor(request, *decode_, ""), &d);
  decode_->Settle();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  for (int sample = 0; sample < 4; ++sample) {
    EXPECT_EQ(d.samples[sample],
              SimModel::Generate(request.prompt, 20, 1, sample));
  }
  // The prompt once, and nineteen tokens of each fed back.
  EXPECT_EQ(decode_->backend().rows_computed(), 100 + 4 * 19);
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 100u);
  ExpectClean(*decode_);
}

// One ends with prefill's token, the others go on.
TEST_F(HandoffTest, ASampleMayEndBeforeTheHandoff) {
  GenerateRequest request = Request(1, 100, 6);
  request.n = 3;
  request.stop.stop_ids = {SimModel::Generate(request.prompt, 1, 1, 1)[0]};
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok() && d.ended->ok());
  EXPECT_EQ(p.finish[1], FinishReason::kStop);
  EXPECT_FALSE(d.samples.contains(1));
  EXPECT_EQ(d.finish[0], FinishReason::kLength);
  EXPECT_EQ(d.finish[2], FinishReason::kLength);
  EXPECT_EQ(d.last->usage.completion_tokens, 13);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// Nothing is given back before all have ended, though the first token ends all.
TEST_F(HandoffTest, DecodeGivesDeferredAnswersBackHoweverShort) {
  GenerateRequest request = Request(1, 100, 1);
  request.best_of = 3;
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok() && d.ended->ok()) << *p.ended << *d.ended;
  EXPECT_TRUE(p.samples.empty());
  // The likeliest of the three.
  std::vector<std::pair<float, TokenId>> made;
  for (int sample = 0; sample < 3; ++sample) {
    TokenId token = SimModel::Generate(request.prompt, 1, 1, sample)[0];
    made.emplace_back(
        SimModel::Compare(SimModel::StateOf(request.prompt), token, 0).logprob,
        token);
  }
  EXPECT_EQ(d.tokens, std::vector<TokenId>{
                          std::max_element(made.begin(), made.end())->second});
  EXPECT_EQ(d.last->usage.completion_tokens, 3);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// What may have become a stop text comes out with the end.
TEST_F(HandoffTest, ADeferredAnswersTextIsWhole) {
  GenerateRequest request = Request(1, 100, 6);
  request.best_of = 2;
  request.stop.stop_strings = {">!"};
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  std::string text;
  for (TokenId token : d.tokens) absl::StrAppend(&text, "<", token, ">");
  EXPECT_EQ(d.tokens.size(), 6u);
  EXPECT_EQ(d.text, text);
}

TEST_F(HandoffTest, TokensOfASearchComeWithTheirLogprobs) {
  GenerateRequest request = Request(1, 100, 6);
  request.beam.width = 2;
  for (int shown : {-1, 0, 3}) {
    request.id = RequestId(5 + shown);
    request.sampling.logprobs = shown;
    Leg p, d;
    StartPair(request, p, d);
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    ASSERT_EQ(d.tokens.size(), 6u);
    std::vector<TokenId> before = request.prompt;
    for (size_t i = 0; i < d.tokens.size(); ++i) {
      const TokenLogprobs truth =
          SimModel::Compare(SimModel::StateOf(before), d.tokens[i], shown);
      EXPECT_EQ(d.logprobs[0][i].logprob, shown < 0 ? 0 : truth.logprob);
      EXPECT_EQ(d.logprobs[0][i].top.size(), std::max(shown, 0) + 0u);
      if (shown > 0) {
        EXPECT_EQ(d.logprobs[0][i].top, truth.top);
      }
      before.push_back(d.tokens[i]);
    }
  }
}

// Three beams over 40 tokens of prompt and 20 more: two full blocks together,
// of each two of its own and room for a copy, and the reserve.
TEST_F(HandoffTest, BeamsNeedRoomForAllAtOnce) {
  for (int blocks : {11, 12}) {
    SimWorkerOptions options;
    options.blocks = blocks;
    Start(options);
    GenerateRequest request = Request(1, 40, 20);
    request.beam.width = 3;
    Leg d;
    StartAlone(request, *decode_, 1, {}, d);
    ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
    if (blocks == 12) {
      EXPECT_TRUE(d.ended->ok()) << *d.ended;
    } else {
      EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kKvTooSmall);
    }
  }
}

TEST_F(HandoffTest, PromptLogprobsComeFromWhoeverComputesThePrompt) {
  GenerateRequest request = Request(1, 300, 2);
  request.prompt_logprobs = 3;
  for (int round = 0; round < 2; ++round) {
    request.id = RequestId(10 + round);
    Leg p, d;
    StartPair(request, p, d);
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
    EXPECT_TRUE(d.prompt.empty());
    ASSERT_EQ(p.prompt.size(), 299u);
    for (int at : {1, 16, 256, 299}) {
      TokenLogprobs truth = SimModel::Compare(
          SimModel::StateOf(absl::MakeConstSpan(request.prompt).subspan(0, at)),
          request.prompt[at], 3);
      EXPECT_EQ(p.prompt[at - 1].logprob, truth.logprob) << at;
      EXPECT_EQ(p.prompt[at - 1].top, truth.top) << at;
    }
    // Cached at prefill the second time, and computed all the same.
    EXPECT_EQ(prefill_->backend().rows_computed(), 300 * (round + 1));
  }
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, OnlyMissingBlocksTravel) {
  Leg p1, d1, p2, d2;
  GenerateRequest request = Request(1, 100, 5);
  StartPair(request, p1, d1);
  ASSERT_TRUE(RunUntil([&] { return d1.ended && p1.ended; }));
  request.id = RequestId(2);
  StartPair(request, p2, d2);
  ASSERT_TRUE(RunUntil([&] { return d2.ended && p2.ended; }));
  EXPECT_EQ(d2.tokens, d1.tokens);
  EXPECT_EQ(p2.tokens, p1.tokens);
  // Six full blocks are cached at decode; the partial tail travels again.
  EXPECT_EQ(d2.last->transfer.blocks_moved, 1u);
  EXPECT_EQ(d2.last->usage.cached_tokens, 96);
}

TEST_F(HandoffTest, OneWorkerWithBothRolesSharesBlocks) {
  prefill_.reset();
  decode_.reset();
  auto both = Make("b", 9, {true, true}, {});
  GenerateRequest request = Request(1, 100, 20);
  Leg p, d;
  both->core().StartLeg(LegKind::kPrefill, LegFor(request, *both, "b"), &p);
  both->core().StartLeg(LegKind::kDecode, LegFor(request, *both, "b"), &d);
  both->Settle();
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  std::vector<TokenId> all = p.tokens;
  all.insert(all.end(), d.tokens.begin(), d.tokens.end());
  EXPECT_EQ(all, SimModel::Generate(request.prompt, 20, 1));
  EXPECT_EQ(d.last->transfer.bytes_moved, 0u);
  EXPECT_EQ(d.last->transfer.blocks_shared, 7u);
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 0u);
  // 100 prompt tokens and 19 fed back: nothing was computed twice.
  EXPECT_EQ(both->backend().rows_computed(), 119);
  ExpectClean(*both);
}

TEST_F(HandoffTest, DecodeAlonePrefillsShortPrompts) {
  GenerateRequest request = Request(1, 10, 20);
  Leg d;
  decode_->core().StartLeg(LegKind::kDecode, LegFor(request, *decode_, ""), &d);
  decode_->Settle();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_EQ(d.first_index, 0);
  EXPECT_EQ(d.tokens, SimModel::Generate(request.prompt, 20, 1));
  EXPECT_EQ(d.last->transfer.transport, "local");
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 10u);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, TheFirstTokenMayEndTheRequest) {
  Leg p, d;
  StartPair(Request(1, 50, 1), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok());
  EXPECT_TRUE(d.ended->ok());
  EXPECT_EQ(p.tokens.size(), 1u);
  EXPECT_TRUE(d.tokens.empty());
  ASSERT_TRUE(p.last.has_value());
  EXPECT_EQ(p.last->usage.completion_tokens, 1);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, ALegWithoutItsPartnerEndsInTime) {
  Leg d, p, lost;
  decode_->core().StartLeg(LegKind::kDecode,
                           LegFor(Request(1, 50, 5), *decode_, "p"), &d);
  prefill_->core().StartLeg(LegKind::kPrefill,
                            LegFor(Request(2, 50, 5), *prefill_, "d"), &p);
  prefill_->core().StartLeg(
      LegKind::kPrefill, LegFor(Request(3, 50, 5), *prefill_, "nobody"), &lost);
  prefill_->Settle();
  decode_->Settle();
  EXPECT_TRUE(RunUntil([&] { return d.ended && p.ended && lost.ended; },
                       absl::Seconds(11)));
  EXPECT_FALSE(d.ended->ok());
  EXPECT_FALSE(p.ended->ok());
  EXPECT_EQ(ErrorInfoOf(*lost.ended).reason, ErrorReason::kWorkerLost);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, DrainRefusesNewLegs) {
  decode_->core().BeginDrain();
  Leg d;
  decode_->core().StartLeg(LegKind::kDecode,
                           LegFor(Request(1, 50, 5), *decode_, ""), &d);
  ASSERT_TRUE(d.ended.has_value());
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kDraining);
}

TEST_F(HandoffTest, WhatCanNeverFitIsRefusedWithTheWayOut) {
  Leg d;
  decode_->core().StartLeg(LegKind::kDecode,
                           LegFor(Request(1, 10, 2000), *decode_, ""), &d);
  ASSERT_TRUE(d.ended.has_value());
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kKvTooSmall);
  EXPECT_NE(d.ended->message().find("--kv-memory"), std::string::npos);
}

TEST_F(HandoffTest, CancelAtAnyMomentLeavesNothingBehind) {
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

TEST_F(HandoffTest, ACancelledLegEndsTheOtherOne) {
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

TEST_F(HandoffTest, PrefillDeathBeforeCommitEndsTheDecodeLeg) {
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

TEST_F(HandoffTest, DecodeDeathEndsThePrefillLeg) {
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

TEST_F(HandoffTest, ASilentPeerLosesItsLease) {
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

TEST_F(HandoffTest, AChangedPageIsSentAgain) {
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

TEST_F(HandoffTest, PagesThatNeverArriveWholeFailTheTransfer) {
  network_.on_page = [](TransferId, absl::Span<uint8_t> page) { page[3] ^= 1; };
  Leg p, d;
  StartPair(Request(1, 90, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kTransferFailed);
  EXPECT_TRUE(d.tokens.empty());
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, AChunkThatFailsGoesOnOverAnotherTransport) {
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

TEST_F(HandoffTest, AttemptsAreBoundedOverAllTransports) {
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
TEST_F(HandoffTest, APageSpoiledAfterItsChunkIsSentAgain) {
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

TEST_F(HandoffTest, AChunkWhosePagesNeverCameIsAskedForAgain) {
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

TEST_F(HandoffTest, RepeatedMessagesChangeNothing) {
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

TEST_F(HandoffTest, TheDeadlineIsKeptWithinOneStep) {
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

TEST_F(HandoffTest, AFullDecodePoolMakesOffersWait) {
  SimWorkerOptions options;
  options.blocks = 20;
  Start(options);
  std::vector<std::unique_ptr<Leg>> ps, ds;
  for (int i = 0; i < 12; ++i) {
    ps.push_back(std::make_unique<Leg>());
    ds.push_back(std::make_unique<Leg>());
    StartPair(Request(10 + i, 90, 30), *ps.back(), *ds.back());
  }
  ASSERT_TRUE(RunUntil([&] {
    return std::all_of(ds.begin(), ds.end(),
                       [](auto& d) { return d->ended.has_value(); });
  }));
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(ds[i]->ended->ok()) << *ds[i]->ended;
    std::vector<TokenId> all = ps[i]->tokens;
    all.insert(all.end(), ds[i]->tokens.begin(), ds[i]->tokens.end());
    EXPECT_EQ(all,
              SimModel::Generate(Request(10 + i, 90, 30).prompt, 30, 10 + i));
  }
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// Those behind the first that waits have met their prefill worker as well.
TEST_F(HandoffTest, ALongWaitForBlocksIsNoMissedMeeting) {
  SimWorkerOptions options;
  options.blocks = 10;  // one request at a time
  options.backend.step_cost = absl::Milliseconds(500);
  ASSERT_GE(10 * options.backend.step_cost, options.handoff.meet_timeout);
  Start(options);
  std::vector<Leg> ps(3), ds(3);
  for (int i = 0; i < 3; ++i) StartPair(Request(10 + i, 90, 20), ps[i], ds[i]);
  ASSERT_TRUE(RunUntil([&] {
    return std::all_of(ds.begin(), ds.end(),
                       [](const Leg& d) { return d.ended.has_value(); });
  }));
  for (const Leg& d : ds) EXPECT_TRUE(d.ended->ok()) << *d.ended;
}

TEST_F(HandoffTest, PreemptedSequencesRecomputeTheSameTokens) {
  SimWorkerOptions options;
  options.blocks = 14;
  Start(options);
  std::vector<std::unique_ptr<Leg>> legs;
  for (int i = 0; i < 6; ++i) {
    legs.push_back(std::make_unique<Leg>());
    decode_->core().StartLeg(LegKind::kDecode,
                             LegFor(Request(20 + i, 20, 60), *decode_, ""),
                             legs.back().get());
  }
  decode_->Settle();
  ASSERT_TRUE(RunUntil([&] {
    return std::all_of(legs.begin(), legs.end(),
                       [](auto& leg) { return leg->ended.has_value(); });
  }));
  int64_t rows_without_preemption = 6 * (20 + 59);
  EXPECT_GT(decode_->backend().rows_computed(), rows_without_preemption);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(legs[i]->ended->ok()) << *legs[i]->ended;
    EXPECT_EQ(legs[i]->tokens,
              SimModel::Generate(Request(20 + i, 20, 60).prompt, 60, 20 + i));
  }
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, AFailedStepEndsItsRequestsAndNothingElse) {
  Leg p, d, later;
  StartPair(Request(1, 90, 8), p, d);
  prefill_->backend().FailNextStep(absl::InternalError("device lost"));
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kInternal);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffTest, StopStringsSpanTheHandoffAndNeverLeak) {
  GenerateRequest request = Request(1, 90, 30);
  std::vector<TokenId> made = SimModel::Generate(request.prompt, 30, 1);
  auto text_of = [](TokenId id) { return absl::StrCat("<", id, ">"); };
  // Begins in prefill's token and ends inside decode's second.
  std::string all = text_of(made[0]) + text_of(made[1]) + text_of(made[2]);
  std::string stop = all.substr(1, all.size() - 2);
  request.stop.stop_strings = {stop};
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(p.text + d.text, "<");
  EXPECT_EQ(d.last->finish, FinishReason::kStop);
  EXPECT_EQ(d.last->usage.completion_tokens, 3);
}

}  // namespace
}  // namespace penstock
