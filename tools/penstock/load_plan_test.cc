#include "tools/penstock/load_plan.h"

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

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

absl::StatusOr<std::vector<PlannedRequest>> Trace(const std::string& text,
                                                  int max_requests = 100) {
  std::istringstream in(text);
  return PlanTrace(in, max_requests, 2, kLimits);
}

TEST(PlanTraceTest, EqualHashesAreEqualTokens) {
  const auto plan = Trace(
      R"({"timestamp":0,"input_length":1000,"output_length":5,"hash_ids":[4,5]}
{"timestamp":300,"input_length":600,"output_length":6,"hash_ids":[4,6]})");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& a = (*plan)[0];
  const auto& b = (*plan)[1];
  EXPECT_EQ(a.prompt.size(), 1000u);
  EXPECT_EQ(b.prompt.size(), 600u);
  EXPECT_EQ(b.due_ms, 150);
  EXPECT_EQ(b.output_tokens, 6);
  EXPECT_TRUE(
      std::equal(a.prompt.begin(), a.prompt.begin() + 512, b.prompt.begin()));
  EXPECT_NE(a.prompt[512], b.prompt[512]);
}

TEST(PlanTraceTest, CutsToWhatTheModelAllows) {
  const auto plan =
      Trace(R"({"timestamp":0,"input_length":9000,"output_length":900})");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)[0].prompt.size(), 2000u);
  EXPECT_EQ((*plan)[0].output_tokens, 48);
}

TEST(PlanTraceTest, NamesTheBadLine) {
  const std::string good =
      R"({"timestamp":0,"input_length":1,"output_length":1})"
      "\n";
  for (const char* bad :
       {"", "[]", "{}", R"({"timestamp":-1,"input_length":1})",
        R"({"timestamp":0,"input_length":1e99,"output_length":1})"}) {
    const auto plan = Trace(good + bad + "\n");
    ASSERT_FALSE(plan.ok()) << bad;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr("line 2"));
  }
  // Not read when it is not asked for.
  EXPECT_TRUE(Trace(good + "bad", 1).ok());
}

}  // namespace
}  // namespace penstock
