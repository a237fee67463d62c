#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

std::string TextOf(TokenId id) { return absl::StrCat("<", id, ">"); }

// Attempts that go on after what earlier ones delivered.
class HandoffResumeTest : public HandoffFixture {};

TEST_F(HandoffResumeTest, DecodeAloneGoesOnAfterEveryToken) {
  const GenerateRequest request = Request(1, 50, 20);
  const auto all = SimModel::Generate(request.prompt, 20, 1);
  for (int before = 1; before < 20; ++before) {
    Leg d;
    StartAlone(request, *decode_, before, {First(all, before)}, d);
    ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
    EXPECT_TRUE(d.ended->ok()) << *d.ended;
    EXPECT_EQ(d.first_index, before);
    EXPECT_EQ(d.tokens, After(all, before));
    EXPECT_EQ(d.last->finish, FinishReason::kLength);
    EXPECT_EQ(d.last->usage.prompt_tokens, 50);
    EXPECT_EQ(d.last->usage.completion_tokens, 20);
  }
  ExpectClean(*decode_);
}

TEST_F(HandoffResumeTest, AHandoffBringsWhatWasDeliveredToo) {
  const GenerateRequest request = Request(1, 100, 40);
  const auto all = SimModel::Generate(request.prompt, 40, 1);
  Leg p, d;
  StartPair(request, *prefill_, *decode_, 2, First(all, 15), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok()) << *p.ended;
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(p.first_index, 15);
  EXPECT_EQ(p.tokens, std::vector<TokenId>{all[15]});
  EXPECT_EQ(d.first_index, 16);
  EXPECT_EQ(d.tokens, After(all, 16));
  EXPECT_EQ(d.last->usage.prompt_tokens, 100);
  EXPECT_EQ(d.last->usage.completion_tokens, 40);
  // 115 tokens lie in 8 blocks; decode feeds back all but the last token.
  EXPECT_EQ(d.last->transfer.blocks_moved, 8u);
  EXPECT_EQ(d.last->transfer.decode_prompt_tokens, 0u);
  EXPECT_EQ(prefill_->backend().rows_computed(), 115);
  EXPECT_EQ(decode_->backend().rows_computed(), 40 - 16);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffResumeTest, TheNextTokenMayEndAResumedRequestAtPrefill) {
  const GenerateRequest request = Request(1, 40, 8);
  const auto all = SimModel::Generate(request.prompt, 8, 1);
  Leg p, d;
  StartPair(request, *prefill_, *decode_, 2, First(all, 7), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok() && d.ended->ok()) << *p.ended << *d.ended;
  EXPECT_EQ(p.tokens, After(all, 7));
  EXPECT_EQ(p.last->usage.completion_tokens, 8);
  EXPECT_TRUE(d.tokens.empty());
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffResumeTest, BothWorkersMustGoOnAfterTheSameTokens) {
  const GenerateRequest request = Request(1, 100, 40);
  const auto all = SimModel::Generate(request.prompt, 40, 1);
  auto other = First(all, 5);
  other[4] ^= 1;  // in a partly filled block, which has no hash
  LegRequest to_prefill = LegFor(request, *prefill_, "d");
  to_prefill.delivered = Delivered({First(all, 5)});
  LegRequest to_decode = LegFor(request, *decode_, "p");
  to_decode.delivered = Delivered({other});
  Leg p, d;
  prefill_->core().StartLeg(LegKind::kPrefill, to_prefill, &p);
  decode_->core().StartLeg(LegKind::kDecode, to_decode, &d);
  prefill_->Settle();
  decode_->Settle();
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kTransferFailed);
  EXPECT_TRUE(d.tokens.empty());
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

// One has ended, one has come some way, of the others nothing was delivered.
TEST_F(HandoffResumeTest, EachOfSeveralAnswersGoesOnByItself) {
  GenerateRequest request = Request(1, 40, 12);
  request.n = 4;
  std::vector<std::vector<TokenId>> all;
  for (int sample = 0; sample < 4; ++sample) {
    all.push_back(SimModel::Generate(request.prompt, 12, 1, sample));
  }
  Leg d;
  StartAlone(request, *decode_, 2, {all[0], First(all[1], 7), {}}, d);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_TRUE(d.samples[0].empty());
  EXPECT_EQ(d.first_indices[1], 7);
  EXPECT_EQ(d.samples[1], After(all[1], 7));
  EXPECT_EQ(d.samples[2], all[2]);
  EXPECT_EQ(d.samples[3], all[3]);
  EXPECT_EQ(d.last->usage.completion_tokens, 48);
  EXPECT_EQ(d.last->usage.prompt_tokens, 40);
  ExpectClean(*decode_);
}

TEST_F(HandoffResumeTest, WhatHasEndedAlreadyEndsAtOnce) {
  GenerateRequest request = Request(1, 40, 4);
  const auto all = SimModel::Generate(request.prompt, 4, 1);
  Leg one, two;
  StartAlone(request, *decode_, 2, {all}, one);
  EXPECT_TRUE(one.ended.has_value() && one.ended->ok());
  request.n = 2;
  StartAlone(request, *decode_, 3,
             {all, SimModel::Generate(request.prompt, 4, 1, 1)}, two);
  EXPECT_TRUE(two.ended.has_value() && two.ended->ok());
  EXPECT_EQ(decode_->backend().rows_computed(), 0);
  ExpectClean(*decode_);
}

TEST_F(HandoffResumeTest, ScoredPromptsAreNotScoredAgain) {
  GenerateRequest request = Request(1, 100, 6);
  request.prompt_logprobs = 2;
  const auto all = SimModel::Generate(request.prompt, 6, 1);
  Leg d;
  StartAlone(request, *decode_, 2, {First(all, 2)}, d);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_TRUE(d.prompt.empty());
  EXPECT_EQ(d.tokens, After(all, 2));
}

// What was held back as the start of a stop string is still held back, and text
// that was delivered is not delivered again.
TEST_F(HandoffResumeTest, StopStringsSpanTheAttempts) {
  GenerateRequest request = Request(1, 90, 30);
  const auto made = SimModel::Generate(request.prompt, 30, 1);
  request.stop.stop_strings = {TextOf(made[1]) + TextOf(made[2]).substr(0, 3)};
  Leg alone, p, d;
  StartAlone(request, *decode_, 2, {First(made, 2)}, alone);
  ASSERT_TRUE(RunUntil([&] { return alone.ended.has_value(); }));
  EXPECT_EQ(alone.text, "");
  EXPECT_EQ(alone.last->finish, FinishReason::kStop);
  EXPECT_EQ(alone.last->usage.completion_tokens, 3);
  // One that never comes: its start is text after all.
  request.stop.stop_strings = {TextOf(made[1]) + "no"};
  StartPair(request, *prefill_, *decode_, 3, First(made, 2), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  std::string rest;
  for (TokenId token : After(made, 1)) rest += TextOf(token);
  EXPECT_EQ(p.text + d.text, rest);
}

TEST_F(HandoffResumeTest, WhatCannotHaveBeenDeliveredIsRefused) {
  GenerateRequest request = Request(1, 40, 4);
  auto code_for = [&](std::vector<std::vector<TokenId>> delivered,
                      std::string partner = "") {
    LegRequest leg = LegFor(request, *decode_, partner);
    leg.delivered = Delivered(delivered);
    Leg d;
    decode_->core().StartLeg(LegKind::kDecode, leg, &d);
    return d.ended.value_or(absl::OkStatus()).code();
  };
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code_for({{1, 2, 3, 4, 5}}), refused);
  EXPECT_EQ(code_for({{1}, {2}}), refused);
  EXPECT_EQ(code_for({{-1}}), refused);
  EXPECT_EQ(code_for({{SimModel::kVocabulary}}), refused);
  request.stop.stop_ids = {7};
  EXPECT_EQ(code_for({{7, 8}}), refused);
  request.n = 2;
  EXPECT_EQ(code_for({{1}}, "p"), refused);
  request.best_of = 2;
  EXPECT_EQ(code_for({{1}}), refused);
  decode_->Settle();
  EXPECT_TRUE(decode_->core().idle());
}

}  // namespace
}  // namespace penstock
