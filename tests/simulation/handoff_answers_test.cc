#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

class HandoffAnswersTest : public HandoffFixture {};

// Four answers over one prompt: its pages travel once, and each answer has its
// own stream of draws.
TEST_F(HandoffAnswersTest, SamplesShareOneTransfer) {
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

TEST_F(HandoffAnswersTest, SamplesOfALocalPromptAreTheSame) {
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
TEST_F(HandoffAnswersTest, ASampleMayEndBeforeTheHandoff) {
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
TEST_F(HandoffAnswersTest, DecodeGivesDeferredAnswersBackHoweverShort) {
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
TEST_F(HandoffAnswersTest, ADeferredAnswersTextIsWhole) {
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

TEST_F(HandoffAnswersTest, TokensOfASearchComeWithTheirLogprobs) {
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
TEST_F(HandoffAnswersTest, BeamsNeedRoomForAllAtOnce) {
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

TEST_F(HandoffAnswersTest, PromptLogprobsComeFromWhoeverComputesThePrompt) {
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

}  // namespace
}  // namespace penstock
