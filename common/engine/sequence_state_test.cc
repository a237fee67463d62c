#include "common/engine/sequence_state.h"

#include <memory>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "common/model/text/small_vocabulary.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class SequenceStateTest : public testing::Test {
 protected:
  SequenceStateTest() {
    request_.prompt = {65, 66, 67};
    request_.sampling.seed = 0x123456789abcdef0;
    request_.stop.max_tokens = 10;
    request_.stop.stop_strings = {"xyz"};
  }

  absl::StatusOr<std::vector<ResumedAnswer>> Parse(absl::string_view state) {
    return ParseState(state, request_, BlockHash(9), tokenizer_.get(), 64);
  }
  TokenId Letter(const char* text) {
    return (*tokenizer_->Encode(text, SpecialTokens::kPlain))[0];
  }
  // One letter for each answer.
  std::string State(int answers) {
    return SerializeState(
        request_, std::vector<AnswerDraws>(answers, {{Letter("x"), {}, 0}}));
  }

  std::unique_ptr<Tokenizer> tokenizer_ = *CreateTokenizer(SmallVocabulary());
  GenerateRequest request_;
};

TEST_F(SequenceStateTest, GoesOnWhereItWasLeft) {
  // "xy" is held back: it may become the stop string.
  auto answers = Parse(
      SerializeState(request_, {{{Letter("x"), {}, 0}, {Letter("y"), {}, 0}}}));
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 1u);
  Sequence& sequence = *(*answers)[0].sequence;
  EXPECT_EQ(sequence.generated(), 2);
  TokenDelivery next = sequence.Append({Letter("a"), {}, 0});
  EXPECT_EQ(next.index, 2);
  EXPECT_EQ(next.token.text, "xya");
}

TEST_F(SequenceStateTest, AnswersShareOnePrompt) {
  request_.n = 3;
  std::string state = SerializeState(
      request_,
      {{{Letter("x"), {}, 0}}, {{Letter("a"), {}, 0}}, {{Letter("y"), {}, 0}}});
  EXPECT_EQ(state.size(), StateBytes(3, 3));
  auto answers = Parse(state);
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*answers)[i].sequence->sample(), i);
    EXPECT_EQ((*answers)[i].made[0].sample, i);
  }
  EXPECT_EQ((*answers)[1].made[0].token.text, "a");
  request_.n = 2;
  EXPECT_NE(Parse(state).status().message().find("answers"), std::string::npos);
}

TEST_F(SequenceStateTest, BeamsCarryTheBestTokensUnchosen) {
  request_.beam.width = 2;
  SampledToken best{Letter("x"), {-1.5f, {{Letter("x"), -1.5f}}}, 0};
  auto answers = Parse(SerializeState(request_, {{best}}));
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_EQ((*answers)[0].sequence->generated(), 0);
  EXPECT_TRUE((*answers)[0].made.empty());
  EXPECT_EQ((*answers)[0].drawn[0].logprobs.top, best.logprobs.top);
}

TEST_F(SequenceStateTest, RefusesWhatContradictsTheRequest) {
  std::string state = State(1);
  request_.prompt[1] = 70;
  EXPECT_NE(Parse(state).status().message().find("prompt"), std::string::npos);
  request_.prompt[1] = 66;
  request_.sampling.seed = 1;
  EXPECT_NE(Parse(state).status().message().find("seed"), std::string::npos);
}

TEST_F(SequenceStateTest, RefusesAnAnswerThatGoesOnAfterItsEnd) {
  request_.stop.max_tokens = 1;
  std::string state =
      SerializeState(request_, {{{Letter("x"), {}, 0}, {Letter("y"), {}, 0}}});
  EXPECT_NE(Parse(state).status().message().find("after its end"),
            std::string::npos);
}

TEST_F(SequenceStateTest, RefusesAnUnknownVersionByNumber) {
  std::string state = State(1);
  state[4] = 77;
  absl::Status status = Parse(state).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("77"), std::string::npos);
}

TEST_F(SequenceStateTest, EveryTruncationIsRefused) {
  request_.n = 2;
  std::string state = State(2);
  ASSERT_TRUE(Parse(state).ok());
  for (size_t size = 0; size < state.size(); ++size) {
    EXPECT_FALSE(Parse(state.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Parse(state + '\0').ok());
}

TEST_F(SequenceStateTest, MutatedStatesNeverCrash) {
  request_.best_of = 2;
  request_.sampling.logprobs = 2;
  SampledToken drawn{Letter("x"), {-1, {{66, -1}, {67, -2}}}, 0};
  const std::string state = SerializeState(request_, {{drawn}, {drawn}});
  ASSERT_TRUE(Parse(state).ok());
  SeededRandom random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = state;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      mutated[random.Below(mutated.size())] = static_cast<char>(random.Next());
    }
    auto parsed = Parse(mutated);
    if (!parsed.ok()) continue;
    for (const ResumedAnswer& answer : *parsed) {
      EXPECT_LE(answer.sequence->length(), 64);
    }
  }
}

TEST_F(SequenceStateTest, RefusesAnswersOfTheWrongLength) {
  auto why = [&](const AnswerDraws& draws) {
    return std::string(
        Parse(SerializeState(request_, {draws})).status().message());
  };
  const SampledToken drawn{Letter("x"), {-1.5f, {{Letter("x"), -1.5f}}}, 0};
  EXPECT_NE(why({}).find("0 draws"), std::string::npos) << why({});
  request_.beam.width = 2;
  EXPECT_EQ(why({drawn}), "");
  EXPECT_NE(why({drawn, drawn}).find("2 draws"), std::string::npos);
  EXPECT_NE(why({{Letter("x"), {}, 0}}).find("nothing to go on with"),
            std::string::npos);
}

TEST_F(SequenceStateTest, RefusesTokensThatAreNone) {
  auto ok = [&](TokenId token) {
    return Parse(SerializeState(request_, {{{token, {}, 0}}})).ok();
  };
  EXPECT_TRUE(ok(0));
  EXPECT_TRUE(ok(tokenizer_->vocab_size() - 1));
  EXPECT_FALSE(ok(tokenizer_->vocab_size()));
  EXPECT_FALSE(ok(-1));
}

}  // namespace
}  // namespace penstock
