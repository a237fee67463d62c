#include <algorithm>
#include <memory>
#include <string>
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
