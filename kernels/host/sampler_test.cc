#include "kernels/host/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

SampleRow Row(float temperature, int top_k, float top_p, uint64_t position,
              int logprobs = -1) {
  SampleRow row;
  row.row = 3;
  row.params.temperature = temperature;
  row.params.top_k = top_k;
  row.params.top_p = top_p;
  row.params.seed = 42;
  row.params.logprobs = logprobs;
  row.position = position;
  return row;
}

SampledToken SampleOrDie(absl::Span<const float> logits, const SampleRow& row) {
  Sampler sampler;
  absl::StatusOr<SampledToken> sampled = sampler.Sample(logits, row);
  EXPECT_TRUE(sampled.ok()) << sampled.status();
  return *sampled;
}

// Logits of a vocabulary of the real model's size: a peak and a long tail.
std::vector<float> ManyLogits(uint64_t seed, size_t size = 49152) {
  SeededRandom random(seed);
  std::vector<float> logits(size);
  for (float& logit : logits) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += random.Uniform();
    logit = static_cast<float>((sum - 3) * 4);
  }
  return logits;
}

TEST(SamplerTest, GreedyTakesTheLowestIdOfATie) {
  std::vector<float> logits(40, -1.0f);
  logits[33] = logits[17] = logits[38] = 2.5f;
  EXPECT_EQ(SampleOrDie(logits, Row(0, 0, 1, 0)).token, 17);
  logits[39] = 2.6f;  // beyond the last whole vector
  EXPECT_EQ(SampleOrDie(logits, Row(0, 0, 1, 0)).token, 39);
}

TEST(SamplerTest, GreedyTreatsBothZerosAsEqual) {
  EXPECT_EQ(SampleOrDie({-1.0f, -0.0f, 0.0f}, Row(0, 0, 1, 0)).token, 1);
  // top_k 1 takes the first of the canonical order: the same token.
  EXPECT_EQ(SampleOrDie({-1.0f, -0.0f, 0.0f}, Row(1, 1, 1, 0)).token, 1);
}

// Expected probabilities by their definition, in plain double arithmetic.
std::vector<double> Expected(const std::vector<float>& logits,
                             const SampleRow& row) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return logits[a] > logits[b]; });
  if (row.params.top_k > 0) {
    order.resize(std::min<size_t>(order.size(), row.params.top_k));
  }
  std::vector<double> p(logits.size(), 0.0);
  double total = 0;
  for (int id : order) {
    total += p[id] = std::exp(double{logits[id]} / row.params.temperature);
  }
  double sum = 0, kept = 0;
  for (int id : order) {
    if (sum >= row.params.top_p * total) {
      p[id] = 0;
    } else {
      kept += p[id];
    }
    sum += p[id];
  }
  for (double& value : p) value /= kept;
  return p;
}

struct Case {
  float temperature;
  int top_k;
  float top_p;
};

class SamplerDistributionTest : public ::testing::TestWithParam<Case> {};

TEST_P(SamplerDistributionTest, MatchesTheClosedFormByChiSquare) {
  const std::vector<float> logits = {0.5f, 2.0f, -1.0f, 2.0f, 1.25f,
                                     0.0f, 3.0f, -4.0f, 1.0f, 0.75f};
  SampleRow row =
      Row(GetParam().temperature, GetParam().top_k, GetParam().top_p, 0);
  std::vector<double> expected = Expected(logits, row);
  constexpr int kDraws = 40000;
  std::vector<int> counts(logits.size());
  Sampler sampler;
  for (int i = 0; i < kDraws; ++i) {
    row.position = i;
    absl::StatusOr<SampledToken> sampled = sampler.Sample(logits, row);
    ASSERT_TRUE(sampled.ok());
    ++counts[sampled->token];
  }
  double chi_square = 0;
  int degrees = -1;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (expected[id] == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " should be cut off";
      continue;
    }
    double mean = expected[id] * kDraws;
    chi_square += (counts[id] - mean) * (counts[id] - mean) / mean;
    ++degrees;
  }
  // Chi-square at p = 0.001 for 0 to 9 degrees of freedom.
  constexpr double kLimit[] = {0.001,  10.828, 13.816, 16.266, 18.467,
                               20.515, 22.458, 24.322, 26.124, 27.877};
  EXPECT_LT(chi_square, kLimit[degrees]);
}

INSTANTIATE_TEST_SUITE_P(Params, SamplerDistributionTest,
                         ::testing::Values(Case{1, 0, 1}, Case{0.5f, 0, 1},
                                           Case{2, 0, 1}, Case{1, 3, 1},
                                           Case{1, 4, 1}, Case{1, 0, 0.8f},
                                           Case{0.7f, 5, 0.9f}, Case{1, 100, 1},
                                           Case{1, 1, 1}, Case{1, 0, 1e-6f},
                                           Case{1.5f, 0, 0.999f}));

TEST(SamplerTest, TheTokenDependsOnSeedSampleAndPositionOnly) {
  const std::vector<float> logits = ManyLogits(1);
  std::vector<SampleRow> rows;
  for (uint64_t position = 0; position < 60; ++position) {
    rows.push_back(Row(0.9f, position % 3 == 0 ? 40 : 0,
                       position % 2 == 0 ? 0.95f : 1.0f, position));
    rows.back().sample = position % 5;
  }
  std::vector<TokenId> forward, backward;
  Sampler one, two;
  for (const SampleRow& row : rows) {
    forward.push_back(one.Sample(logits, row)->token);
  }
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    SampleRow moved = *row;
    moved.row += 7;  // another place in another batch
    backward.push_back(two.Sample(logits, moved)->token);
  }
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);

  std::map<TokenId, int> distinct;
  for (int change = 0; change < 60; ++change) {
    SampleRow row = rows[1];
    if (change % 3 == 0) row.params.seed += change;
    if (change % 3 == 1) row.sample += change;
    if (change % 3 == 2) row.position += change;
    ++distinct[SampleOrDie(logits, row).token];
  }
  EXPECT_GT(distinct.size(), 20u);
}

// Walks the sorted order of the whole vocabulary the naive way.
TEST(SamplerTest, DrawsFromALargeVocabularyAsANaiveSamplerDoes) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<float> logits = ManyLogits(seed, 49152 - seed);
    std::vector<int> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return logits[a] > logits[b]; });
    for (uint64_t position = 0; position < 20; ++position) {
      SampleRow row =
          Row(seed % 2 == 0 ? 1.0f : 1.7f, position % 2 == 0 ? 0 : 1000,
              position % 4 < 2 ? 1.0f : 0.97f, position);
      std::vector<double> p = Expected(logits, row);
      double target = SampleUniform(42, 0, position);
      double sum = 0;
      int expected = -1;
      for (int id : order) {
        sum += p[id];
        expected = id;
        if (sum > target) break;
      }
      EXPECT_EQ(SampleOrDie(logits, row).token, expected);
    }
  }
}

TEST(SamplerTest, LogprobsMatchANaiveSoftmaxInDouble) {
  for (size_t size : {1, 5, 16, 1000, 49152}) {
    const std::vector<float> logits = ManyLogits(size, size);
    double sum = 0;
    for (float logit : logits) sum += std::exp(double{logit});
    std::vector<int> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return logits[a] > logits[b]; });

    // Temperature and cuts change the draw, not the log-probabilities.
    SampledToken sampled = SampleOrDie(logits, Row(0.6f, 30, 0.9f, 1, 5));
    EXPECT_NEAR(sampled.logprobs.logprob, logits[sampled.token] - std::log(sum),
                2e-6);
    ASSERT_EQ(sampled.logprobs.top.size(), std::min<size_t>(5, size));
    for (size_t n = 0; n < sampled.logprobs.top.size(); ++n) {
      auto [id, logprob] = sampled.logprobs.top[n];
      EXPECT_EQ(id, order[n]);
      EXPECT_NEAR(logprob, logits[id] - std::log(sum), 2e-6);
    }
  }
}

TEST(SamplerTest, AScoreHasTheBitsOfADrawsLogprobs) {
  const std::vector<float> logits = ManyLogits(3, 1000);
  Sampler sampler;
  for (int best : {0, 1, 20}) {
    const SampledToken drawn = SampleOrDie(logits, Row(1.5f, 0, 1, best, best));
    const auto score =
        sampler.Score(logits, {.row = 3, .token = drawn.token, .best = best});
    ASSERT_TRUE(score.ok()) << score.status();
    EXPECT_EQ(score->logprob, drawn.logprobs.logprob);
    EXPECT_EQ(score->top, drawn.logprobs.top);
  }
  const std::vector<float> bad = {0.0f, std::nanf("")};
  EXPECT_EQ(sampler.Score(bad, {}).status().code(),
            absl::StatusCode::kInternal);
}

TEST(SamplerTest, NoLogprobsUnlessAskedAndNoneBestAtZero) {
  const std::vector<float> logits = {0.0f, std::log(3.0f)};
  EXPECT_EQ(SampleOrDie(logits, Row(0, 0, 1, 0)).logprobs.logprob, 0);
  TokenLogprobs own = SampleOrDie(logits, Row(0, 0, 1, 0, 0)).logprobs;
  EXPECT_NEAR(own.logprob, std::log(0.75), 1e-7);
  EXPECT_TRUE(own.top.empty());
}

TEST(SamplerTest, ExtremeButFiniteLogitsAreFine) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> logits = {-kMax, kMax, -kMax};
  for (float temperature : {0.0f, 1e-30f, 1.0f, 1e30f}) {
    SampledToken sampled = SampleOrDie(logits, Row(temperature, 0, 1, 5, 3));
    EXPECT_EQ(sampled.token, 1);
    EXPECT_EQ(sampled.logprobs.logprob, 0);
    EXPECT_EQ(sampled.logprobs.top.size(), 3u);
  }
  std::vector<float> flat(1000, 0.5f);
  std::map<TokenId, int> distinct;
  for (uint64_t position = 0; position < 100; ++position) {
    ++distinct[SampleOrDie(flat, Row(1, 0, 1, position)).token];
  }
  EXPECT_GT(distinct.size(), 80u);
}

TEST(SamplerTest, ALogitThatIsNotFiniteIsAnErrorNamingTheRow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    for (size_t id : {0, 20, 39}) {
      std::vector<float> logits(40, 1.0f);
      logits[id] = bad;
      Sampler sampler;
      absl::Status status =
          sampler.Sample(logits, Row(1, 0, 0.9f, 0, 5)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("row 3: the logit of token " + std::to_string(id)));
    }
  }
}

}  // namespace
}  // namespace penstock
