#include "tools/penstock/load_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr LoadLimits kLimits = {5000, 2000, 2048};

TEST(PlanUniformTest, RateIsMetOnAverage) {
  SeededRandom random(1);
  const auto plan = PlanUniform({4000, 10, 32, 8}, kLimits, random);
  ASSERT_EQ(plan.size(), 4000u);
  EXPECT_EQ(plan[0].due_ms, 0);
  // The mean of n exponential gaps has a standard error of mean / sqrt(n).
  EXPECT_NEAR(plan.back().due_ms / 3999, 100, 100 * 4 / 63.2);
  for (const PlannedRequest& request : plan) {
    ASSERT_EQ(request.prompt.size(), 32u);
    ASSERT_EQ(request.output_tokens, 8);
    for (TokenId id : request.prompt) {
      ASSERT_GE(id, 1000);
      ASSERT_LT(id, 5000);
    }
  }
  EXPECT_NE(plan[0].prompt, plan[1].prompt);
}

TEST(PlanUniformTest, NoRateIsAllAtOnceAndSeedsRepeat) {
  SeededRandom first(7), second(7);
  const auto plan = PlanUniform({3, 0, 4, 1}, kLimits, first);
  EXPECT_EQ(plan[2].due_ms, 0);
  EXPECT_EQ(plan[2].prompt,
            PlanUniform({3, 0, 4, 1}, kLimits, second)[2].prompt);
}

TraceRequest Recorded(absl::Duration at, int input, int output,
                      std::vector<uint64_t> hashes = {}) {
  return {at, input, output, std::move(hashes)};
}

TEST(PlanTraceTest, EqualHashesAreEqualTokens) {
  const auto plan =
      PlanTrace({Recorded(absl::ZeroDuration(), 1000, 5, {4, 5}),
                 Recorded(absl::Milliseconds(300), 600, 6, {4, 6}),
                 Recorded(absl::Milliseconds(400), 600, 6), Recorded({}, 1, 1)},
                3, 2, kLimits);
  ASSERT_EQ(plan.size(), 3u);
  const auto& a = plan[0];
  const auto& b = plan[1];
  EXPECT_EQ(a.prompt.size(), 1000u);
  EXPECT_EQ(b.prompt.size(), 600u);
  EXPECT_EQ(b.due_ms, 150);
  EXPECT_EQ(b.output_tokens, 6);
  EXPECT_TRUE(
      std::equal(a.prompt.begin(), a.prompt.begin() + 512, b.prompt.begin()));
  EXPECT_NE(a.prompt[512], b.prompt[512]);
  EXPECT_NE(plan[2].prompt[0], b.prompt[0]);
}

TEST(PlanTraceTest, CutsToWhatTheModelAllows) {
  auto plan_of = [](int input, int output) {
    return PlanTrace({Recorded({}, input, output)}, 9, 1, kLimits)[0];
  };
  // The prompt makes room for the answer, which gets half of it all.
  PlannedRequest request = plan_of(9000, 900);
  EXPECT_EQ(request.prompt.size(), 2048u - 900);
  EXPECT_EQ(request.output_tokens, 900);
  EXPECT_TRUE(request.cut);
  request = plan_of(9000, 3000);
  EXPECT_EQ(request.prompt.size(), 1024u);
  EXPECT_EQ(request.output_tokens, 1024);
  request = plan_of(9000, 10);
  EXPECT_EQ(request.prompt.size(), 2000u);
  EXPECT_TRUE(request.cut);
  request = plan_of(2000, 48);
  EXPECT_EQ(request.prompt.size(), 2000u);
  EXPECT_EQ(request.output_tokens, 48);
  EXPECT_FALSE(request.cut);
}

}  // namespace
}  // namespace penstock
