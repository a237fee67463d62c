#include "common/engine/draw_state.h"

#include <memory>

#include "common/engine/sequence.h"
#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ids: a byte is itself, 256 is <s>, 257 is </s>, which stops.
constexpr TokenId kEnd = 257;

class DrawStateTest : public testing::Test {
 protected:
  DrawStateTest() { request_.prompt = {'a', 'b'}; }

  SampleRow Filled(const DrawState& state, int index) {
    SampleRow row;
    state.Fill(index, row);
    return row;
  }
  DrawState Make() { return DrawState(request_, *tokenizer_); }

  std::unique_ptr<Tokenizer> tokenizer_ = *CreateTokenizer(SmallVocabulary());
  GenerateRequest request_;
};

TEST_F(DrawStateTest, NothingLooksBackByDefault) {
  const SampleRow row = Filled(Make(), 0);
  EXPECT_EQ(row.history, nullptr);
  EXPECT_THAT(row.banned, IsEmpty());
}

TEST_F(DrawStateTest, EachSamplerThatLooksBackHasAHistory) {
  const SamplingParams plain = request_.sampling;
  SamplingParams all[5] = {plain, plain, plain, plain, plain};
  all[0].penalties.repetition = 0.9f;
  all[1].penalties.frequency = -1;
  all[2].penalties.presence = 1;
  all[3].dry.multiplier = 1;
  all[4].mirostat = {.on = true, .tau = 3};
  for (const SamplingParams& sampling : all) {
    request_.sampling = sampling;
    DrawState state = Make();
    state.Add({.token = 'c', .mirostat_mu = 7});
    const SampleRow row = Filled(state, 1);
    ASSERT_NE(row.history, nullptr);
    EXPECT_THAT(row.history->tokens, ElementsAre('a', 'b', 'c'));
    EXPECT_EQ(row.history->prompt_tokens, 2);
    EXPECT_EQ(row.history->mirostat_mu, 7);
  }
  EXPECT_EQ(Filled(Make(), 0).history->mirostat_mu, 6);  // 2 tau
}

TEST_F(DrawStateTest, BreakersAreTheTokensThatHoldThem) {
  request_.sampling.dry.multiplier = 1;
  EXPECT_THAT(Filled(Make(), 0).history->dry_breakers,
              ElementsAre('\n', '"', '*', ':'));
}

TEST_F(DrawStateTest, StopTokensWaitForMinTokens) {
  request_.stop.min_tokens = 2;
  request_.stop.stop_ids = {'z', 'y', 'z'};
  EXPECT_THAT(Filled(Make(), 0).banned, ElementsAre('y', 'z', kEnd));
  EXPECT_THAT(Filled(Make(), 1).banned, ElementsAre('y', 'z', kEnd));
  EXPECT_THAT(Filled(Make(), 2).banned, IsEmpty());
  // The model's own end is then a token like any other.
  request_.stop.ignore_eos = true;
  EXPECT_THAT(Filled(Make(), 1).banned, ElementsAre('y', 'z'));
}

TEST_F(DrawStateTest, ACopyGoesItsOwnWay) {
  request_.sampling.penalties.presence = 1;
  DrawState one = Make();
  const SampleRow in_flight = Filled(one, 0);
  DrawState two = one;
  one.Add({.token = 'x'});
  two.Add({.token = 'y'});
  two.Add({.token = 'z'});
  EXPECT_THAT(Filled(one, 1).history->tokens, ElementsAre('a', 'b', 'x'));
  EXPECT_THAT(Filled(two, 2).history->tokens, ElementsAre('a', 'b', 'y', 'z'));
  two = one;
  one.Add({.token = 'w'});
  EXPECT_THAT(Filled(two, 1).history->tokens, ElementsAre('a', 'b', 'x'));
}

TEST_F(DrawStateTest, StopStringsAreSearchedFromMinTokensOn) {
  request_.stop = {.max_tokens = 9, .min_tokens = 2, .stop_strings = {"xy"}};
  Sequence sequence(request_, BlockHash(9), tokenizer_.get(), 64);
  EXPECT_EQ(sequence.Append({'x'}).token.text, "x");
  EXPECT_EQ(sequence.Append({'y'}).token.text, "y");
  EXPECT_EQ(sequence.Append({'x'}).token.text, "");
  EXPECT_EQ(sequence.Append({'y'}).finish, FinishReason::kStop);
}

}  // namespace
}  // namespace penstock
