#include "tests/contract/transcript.h"

#include <bit>
#include <cstdint>

#include "gtest/gtest.h"

namespace penstock {

bool SameBits(const SampledToken& a, const SampledToken& b) {
  auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  if (a.token != b.token ||
      bits(a.logprobs.logprob) != bits(b.logprobs.logprob) ||
      a.logprobs.top.size() != b.logprobs.top.size()) {
    return false;
  }
  for (size_t i = 0; i < a.logprobs.top.size(); ++i) {
    if (a.logprobs.top[i].first != b.logprobs.top[i].first ||
        bits(a.logprobs.top[i].second) != bits(b.logprobs.top[i].second)) {
      return false;
    }
  }
  return true;
}

void ExpectSame(const Transcript& actual, const Transcript& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(SameBits(actual[i], expected[i]))
        << "token " << i << ": " << actual[i].token << " at "
        << actual[i].logprobs.logprob << ", expected " << expected[i].token
        << " at " << expected[i].logprobs.logprob;
  }
}

}  // namespace penstock
