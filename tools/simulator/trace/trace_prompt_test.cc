#include "tools/simulator/trace/trace_prompt.h"

#include <algorithm>
#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TraceRequest Request(int input, std::vector<uint64_t> hashes) {
  TraceRequest request;
  request.input_tokens = input;
  request.hashes = std::move(hashes);
  return request;
}

// Tokens that both begin with.
size_t Shared(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const size_t n = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

TEST(TracePromptTest, EqualIdsAreEqualTokensWhereverTheyCome) {
  const auto a = TracePrompt(Request(1300, {1, 2, 3}), 0, 0, 1000);
  const auto b = TracePrompt(Request(1024, {1, 4}), 1, 0, 1000);
  ASSERT_EQ(a.size(), 1300u);
  ASSERT_EQ(b.size(), 1024u);
  EXPECT_GE(Shared(a, b), 512u);
  EXPECT_LT(Shared(a, b), 516u);  // by chance
  const auto moved = TracePrompt(Request(512, {2}), 2, 0, 1000);
  EXPECT_TRUE(std::equal(moved.begin(), moved.end(), a.begin() + 512));
}

TEST(TracePromptTest, ALoopSharesNothingWithAnother) {
  const TraceRequest request = Request(600, {1, 2});
  EXPECT_LT(Shared(TracePrompt(request, 0, 0, 1000),
                   TracePrompt(request, 0, 1, 1000)),
            4u);
}

TEST(TracePromptTest, WithoutIdsEveryPromptIsItsOwn) {
  const TraceRequest request = Request(600, {});
  EXPECT_LT(Shared(TracePrompt(request, 0, 0, 1000),
                   TracePrompt(request, 1, 0, 1000)),
            4u);
}

TEST(TracePromptTest, TokensAreOfTheVocabularyAndNeverZero) {
  const auto tokens = TracePrompt(Request(5000, {}), 3, 0, 3);
  EXPECT_EQ(*std::min_element(tokens.begin(), tokens.end()), 1);
  EXPECT_EQ(*std::max_element(tokens.begin(), tokens.end()), 2);
}

}  // namespace
}  // namespace penstock
