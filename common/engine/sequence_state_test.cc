#include "common/engine/sequence_state.h"

#include <cstring>
#include <memory>

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

  std::unique_ptr<Sequence> Make() {
    return std::make_unique<Sequence>(request_, BlockHash(9), tokenizer_.get(),
                                      64);
  }
  absl::StatusOr<std::unique_ptr<Sequence>> Parse(absl::string_view state) {
    return ParseState(state, request_, BlockHash(9), tokenizer_.get(), 64);
  }

  std::unique_ptr<Tokenizer> tokenizer_ =
      *CreateTokenizer(SmallVocabulary());
  GenerateRequest request_;
};

TEST_F(SequenceStateTest, GoesOnWhereItWasLeft) {
  // "xy" is held back: it may become the stop string.
  auto one = Make();
  TokenId x = (*tokenizer_->Encode("x", SpecialTokens::kPlain))[0];
  TokenId y = (*tokenizer_->Encode("y", SpecialTokens::kPlain))[0];
  TokenId a = (*tokenizer_->Encode("a", SpecialTokens::kPlain))[0];
  EXPECT_EQ(one->Append({x, {}}).token.text, "");
  EXPECT_EQ(one->Append({y, {}}).token.text, "");
  auto two = Parse(SerializeState(*one));
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ((*two)->tokens(), one->tokens());
  EXPECT_EQ((*two)->generated(), 2);
  TokenDelivery next = (*two)->Append({a, {}});
  EXPECT_EQ(next.index, 2);
  EXPECT_EQ(next.token.text, "xya");
}

TEST_F(SequenceStateTest, RefusesWhatContradictsTheRequest) {
  auto sequence = Make();
  sequence->Append({65, {}});
  std::string state = SerializeState(*sequence);
  request_.prompt[1] = 70;
  EXPECT_NE(Parse(state).status().message().find("prompt"), std::string::npos);
  request_.prompt[1] = 66;
  request_.sampling.seed = 1;
  EXPECT_NE(Parse(state).status().message().find("seed"), std::string::npos);
}

TEST_F(SequenceStateTest, RefusesAnUnknownVersionByNumber) {
  auto sequence = Make();
  sequence->Append({65, {}});
  std::string state = SerializeState(*sequence);
  state[4] = 77;
  absl::Status status = Parse(state).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("77"), std::string::npos);
}

TEST_F(SequenceStateTest, EveryTruncationIsRefused) {
  auto sequence = Make();
  sequence->Append({65, {}});
  std::string state = SerializeState(*sequence);
  for (size_t size = 0; size < state.size(); ++size) {
    EXPECT_FALSE(Parse(state.substr(0, size)).ok()) << size;
  }
}

TEST_F(SequenceStateTest, MutatedStatesNeverCrash) {
  auto sequence = Make();
  sequence->Append({65, {}});
  const std::string state = SerializeState(*sequence);
  SeededRandom random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = state;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      mutated[random.Below(mutated.size())] = static_cast<char>(random.Next());
    }
    auto parsed = Parse(mutated);
    if (parsed.ok()) {
      EXPECT_LE((*parsed)->length(), 64);
    }
  }
}

}  // namespace
}  // namespace penstock
