#include "router/core/delivered.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TokenFrame Frame(int sample, int first, std::vector<TokenId> tokens,
                 FinishReason finish = FinishReason::kNone) {
  TokenFrame frame;
  frame.sample = sample;
  frame.first_index = first;
  frame.finish = finish;
  for (TokenId id : tokens) {
    FrameToken token;
    token.id = id;
    token.mirostat_mu = static_cast<float>(id) / 2;
    frame.tokens.push_back(token);
  }
  return frame;
}

TEST(DeliveredTest, IsWhatTheNextAttemptGoesOnAfter) {
  GenerateRequest request;
  request.prompt = {1, 2};
  Delivered delivered;
  EXPECT_TRUE(delivered.nothing());
  EXPECT_THAT(delivered.History(request), ElementsAre(1, 2));
  delivered.Add(Frame(0, 0, {10}));
  delivered.Add(Frame(0, 1, {11, 12}));
  EXPECT_FALSE(delivered.nothing());
  EXPECT_EQ(delivered.tokens(), 3);
  EXPECT_THAT(
      delivered.ForLegs(request),
      ElementsAre(ElementsAre(DeliveredToken{10, 5}, DeliveredToken{11, 5.5},
                              DeliveredToken{12, 6})));
  EXPECT_THAT(delivered.History(request), ElementsAre(1, 2, 10, 11, 12));
  ASSERT_EQ(delivered.starts().size(), 1u);
  EXPECT_EQ(delivered.starts()[0].first, 3);
  EXPECT_FALSE(delivered.starts()[0].ended);
}

TEST(DeliveredTest, AnswersPartAfterThePrompt) {
  GenerateRequest request;
  request.prompt = {1, 2};
  request.n = 3;
  Delivered delivered;
  delivered.Add(Frame(2, 0, {10}));
  delivered.Add(Frame(0, 0, {11}, FinishReason::kStop));
  // An answer may end with nothing but its end.
  delivered.Add(Frame(2, 1, {}, FinishReason::kLength));
  EXPECT_EQ(delivered.tokens(), 2);
  EXPECT_THAT(delivered.ForLegs(request),
              ElementsAre(ElementsAre(DeliveredToken{11, 5.5}), IsEmpty(),
                          ElementsAre(DeliveredToken{10, 5})));
  EXPECT_THAT(delivered.History(request), ElementsAre(1, 2));
  const std::vector<SampleStart> starts = delivered.starts();
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[0].first, 1);
  EXPECT_TRUE(starts[0].ended);
  EXPECT_EQ(starts[1].first, 0);
  EXPECT_FALSE(starts[1].ended);
  EXPECT_EQ(starts[2].first, 1);
  EXPECT_TRUE(starts[2].ended);
  EXPECT_DEATH(delivered.Add(Frame(0, 1, {12})), "") << "it has ended";
  EXPECT_DEATH(delivered.Add(Frame(1, 1, {12})), "") << "token 0 is missing";
}

TEST(DeliveredTest, DeferredAnswersAreMadeAnew) {
  GenerateRequest request;
  request.prompt = {1, 2};
  request.best_of = 2;
  Delivered delivered;
  delivered.Add(Frame(0, 0, {10}));
  EXPECT_THAT(delivered.ForLegs(request), IsEmpty());
  EXPECT_THAT(delivered.History(request), ElementsAre(1, 2));
}

TEST(DeliveredTest, CountsThePromptsLogprobs) {
  Delivered delivered;
  TokenFrame frame;
  frame.prompt.first_index = 1;
  frame.prompt.tokens.resize(4);
  delivered.Add(frame);
  EXPECT_EQ(delivered.scored(), 5);
  EXPECT_EQ(delivered.tokens(), 0);
  EXPECT_FALSE(delivered.nothing());
  EXPECT_TRUE(delivered.starts().empty());
}

}  // namespace
}  // namespace penstock
