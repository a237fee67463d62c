#include "common/engine/sequence.h"

#include <memory>
#include <string>
#include <vector>

#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

// Ids: a byte is itself, 256 is <s>, 257 is </s>, which stops.
constexpr TokenId kEnd = 257;

class SequenceTest : public testing::Test {
 protected:
  SequenceTest() {
    request_.prompt = {'a', 'b', 'c'};
    request_.stop.max_tokens = 3;
    request_.sampling.seed = 9;
  }
  Sequence Make(int context_length = 64) {
    return Sequence(request_, BlockHash(9), tokenizer_.get(), context_length);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = *CreateTokenizer(SmallVocabulary());
  GenerateRequest request_;
};

TEST_F(SequenceTest, CountsItsTokensAndEndsAtTheMost) {
  Sequence sequence = Make();
  EXPECT_EQ(sequence.length(), 3);
  EXPECT_EQ(sequence.generated(), 0);
  TokenDelivery one = sequence.Append({'x', {-2, {}}, 5});
  EXPECT_EQ(one.sample, 0);
  EXPECT_EQ(one.index, 0);
  EXPECT_EQ(one.token.id, 'x');
  EXPECT_EQ(one.token.text, "x");
  EXPECT_EQ(one.token.logprobs.logprob, -2);
  EXPECT_EQ(one.token.mirostat_mu, 0) << "nobody asked for mirostat";
  EXPECT_EQ(one.finish, FinishReason::kNone);
  EXPECT_EQ(sequence.Append({'y'}).finish, FinishReason::kNone);
  TokenDelivery three = sequence.Append({'z'});
  EXPECT_EQ(three.index, 2);
  EXPECT_EQ(three.finish, FinishReason::kLength);
  EXPECT_THAT(sequence.tokens(), ElementsAre('a', 'b', 'c', 'x', 'y', 'z'));
  EXPECT_EQ(sequence.generated(), 3);
  EXPECT_EQ(sequence.prompt_tokens(), 3);
}

TEST_F(SequenceTest, TheContextIsABoundToo) {
  Sequence sequence = Make(5);
  EXPECT_EQ(sequence.Append({'x'}).finish, FinishReason::kNone);
  EXPECT_EQ(sequence.Append({'y'}).finish, FinishReason::kLength);
}

TEST_F(SequenceTest, AStopTokenIsCountedButIsNoText) {
  request_.stop.stop_ids = {'q'};
  EXPECT_THAT(Make().StopTokens(), ElementsAre('q', kEnd));
  for (TokenId stop : {TokenId{'q'}, kEnd}) {
    Sequence sequence = Make();
    TokenDelivery last = sequence.Append({stop});
    EXPECT_EQ(last.finish, FinishReason::kStop);
    EXPECT_EQ(last.token.id, stop);
    EXPECT_EQ(last.token.text, "");
    EXPECT_EQ(last.final_text, "");
    EXPECT_EQ(sequence.generated(), 1);
  }
  request_.stop.ignore_eos = true;
  EXPECT_THAT(Make().StopTokens(), ElementsAre('q'));
  Sequence sequence = Make();
  EXPECT_EQ(sequence.Append({kEnd}).finish, FinishReason::kNone);
  EXPECT_EQ(sequence.Append({'q'}).finish, FinishReason::kStop);
}

// Text that may become a stop string waits, and is text after all at the end.
TEST_F(SequenceTest, HeldTextComesWithTheEnd) {
  request_.stop.stop_strings = {"xyz"};
  Sequence stopped = Make();
  EXPECT_EQ(stopped.Append({'x'}).token.text, "");
  EXPECT_EQ(stopped.Append({'y'}).token.text, "");
  TokenDelivery last = stopped.Append({'z'});
  EXPECT_EQ(last.finish, FinishReason::kStop);
  EXPECT_EQ(last.token.text + last.final_text, "");
  Sequence ended = Make();
  ended.Append({'x'});
  EXPECT_EQ(ended.Append({kEnd}).final_text, "x");
  request_.stop.max_tokens = 2;
  Sequence cut = Make();
  cut.Append({'x'});
  last = cut.Append({'y'});
  EXPECT_EQ(last.finish, FinishReason::kLength);
  EXPECT_EQ(last.token.text + last.final_text, "xy");
}

// SentencePiece's: the space that begins a text is none of it.
class StrippingTokenizer : public Tokenizer {
 public:
  explicit StrippingTokenizer(const Tokenizer* tokenizer)
      : tokenizer_(tokenizer) {}
  absl::StatusOr<std::vector<TokenId>> EncodeRuns(
      absl::Span<const TextRun> runs) const override {
    return tokenizer_->EncodeRuns(runs);
  }
  absl::string_view TokenBytes(TokenId id) const override {
    return tokenizer_->TokenBytes(id);
  }
  bool IsSpecial(TokenId id) const override {
    return tokenizer_->IsSpecial(id);
  }
  int vocab_size() const override { return tokenizer_->vocab_size(); }
  const std::vector<TokenId>& stop_tokens() const override {
    return tokenizer_->stop_tokens();
  }
  TokenId bos() const override { return tokenizer_->bos(); }
  TokenId eos() const override { return tokenizer_->eos(); }
  bool add_bos() const override { return false; }
  bool strip_first_space() const override { return true; }

 private:
  const Tokenizer* tokenizer_;
};

TEST_F(SequenceTest, ATextBeginsAfterAControlToken) {
  const StrippingTokenizer stripping(tokenizer_.get());
  for (bool begins : {false, true}) {
    request_.prompt = {'a', begins ? kEnd : TokenId{'b'}};
    Sequence sequence(request_, BlockHash(9), &stripping, 64);
    std::string text = sequence.Append({' '}).token.text;
    text += sequence.Append({'x'}).token.text;
    EXPECT_EQ(text, begins ? "x" : " x");
  }
}

TEST_F(SequenceTest, MirostatsStateIsDeliveredWhenItIsOn) {
  request_.sampling.mirostat = {.on = true, .tau = 3};
  EXPECT_EQ(Make().Append({'x', {}, 5}).token.mirostat_mu, 5);
}

TEST_F(SequenceTest, TheFirstDrawIsOneForEachAnswer) {
  request_.n = 3;
  request_.sampling.logprobs = -1;
  Sequence sequence = Make();
  std::vector<SampleRow> draws = sequence.Draws(7);
  ASSERT_EQ(draws.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(draws[i].row, 7);
    EXPECT_EQ(draws[i].sample, i);
    EXPECT_EQ(draws[i].position, 3u);
    EXPECT_EQ(draws[i].params.seed, 9u);
    EXPECT_EQ(draws[i].params.logprobs, -1);
  }
  std::unique_ptr<Sequence> third = sequence.Fork(2);
  EXPECT_EQ(third->Append({'x'}).sample, 2);
  draws = third->Draws(1);
  ASSERT_EQ(draws.size(), 1u);
  EXPECT_EQ(draws[0].sample, 2u);
  EXPECT_EQ(draws[0].position, 4u);
  EXPECT_EQ(sequence.generated(), 0) << "a fork goes its own way";
}

TEST_F(SequenceTest, AnswersThatAreComparedHaveLogprobs) {
  request_.best_of = 2;
  request_.sampling.logprobs = -1;
  EXPECT_EQ(Make().Draws(0).at(1).params.logprobs, 0);
  request_.sampling.logprobs = 4;
  EXPECT_EQ(Make().Draws(0).at(1).params.logprobs, 4);
}

// Of the best `width` + 2, two may be tokens that end an answer.
TEST_F(SequenceTest, ABeamDrawsEnoughOfTheBest) {
  request_.beam.width = 4;
  request_.stop.stop_ids = {'q'};
  request_.sampling.temperature = 0.7f;
  request_.sampling.logprobs = 1;
  std::vector<SampleRow> draws = Make().Draws(0);
  ASSERT_EQ(draws.size(), 1u);
  EXPECT_EQ(draws[0].params.temperature, 0);
  EXPECT_EQ(draws[0].params.logprobs, 6);
  request_.sampling.logprobs = 20;
  EXPECT_EQ(Make().Draws(0)[0].params.logprobs, 20);
}

TEST_F(SequenceTest, EachFullBlockIsHashedAfterTheOneBefore) {
  const HashSecret secret("s");
  const BlockHasher hasher(secret);
  request_.prompt.assign(40, 'a');
  for (int i = 0; i < 40; ++i) request_.prompt[i] += i % 7;
  Sequence sequence = Make(64);
  absl::Span<const TokenId> tokens = request_.prompt;
  const BlockHash first = hasher.Next(BlockHash(9), tokens.subspan(0, 16));
  const BlockHash second = hasher.Next(first, tokens.subspan(16, 16));
  EXPECT_EQ(sequence.HashOf(1, hasher), second);
  EXPECT_EQ(sequence.HashOf(0, hasher), first);
  EXPECT_EQ(sequence.root(), BlockHash(9));
  EXPECT_DEATH(sequence.HashOf(2, hasher), "") << "the third is not full";
}

TEST_F(SequenceTest, AForkHoldsTheSameBlocks) {
  BlockPool pool(4);
  Sequence sequence = Make();
  sequence.blocks = *pool.TryAllocate(2);
  sequence.computed = 3;
  sequence.published = 1;
  sequence.cached_tokens = 2;
  sequence.looked_up = true;
  sequence.scored = 1;
  std::unique_ptr<Sequence> fork = sequence.Fork(1);
  EXPECT_EQ(fork->computed, 3);
  EXPECT_EQ(fork->published, 1);
  EXPECT_EQ(fork->cached_tokens, 2);
  EXPECT_TRUE(fork->looked_up);
  EXPECT_EQ(fork->scored, 1);
  EXPECT_EQ(fork->prompt_computed_here, 0) << "counted once, for the request";
  ASSERT_EQ(fork->blocks.size(), 2u);
  sequence.blocks.clear();
  EXPECT_EQ(pool.counts().active, 2);
  fork.reset();
  EXPECT_EQ(pool.counts().active, 0);
}

}  // namespace
}  // namespace penstock
