#include "kernels/host/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/host/naive_sampler.h"

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

TEST(SamplerTest, DrawsFromALargeVocabularyAsANaiveSamplerDoes) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<float> logits = ManyLogits(seed, 49152 - seed);
    for (uint64_t position = 0; position < 8; ++position) {
      SampleRow row =
          Row(seed % 2 == 0 ? 1.0f : 1.7f, position % 2 == 0 ? 0 : 1000,
              position % 4 < 2 ? 1.0f : 0.97f, position);
      if (position % 3 == 2) row.params.typical_p = 0.9f;
      if (position % 3 == 1) row.params.top_n_sigma = 2;
      EXPECT_EQ(SampleOrDie(logits, row).token,
                TokenAt(NaivelyDraw(logits, row, false),
                        SampleUniform(42, 0, position)));
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

TEST(SamplerTest, ABanOfEverythingFailsTheDrawAndSaysWhy) {
  SampleRow row = Row(1, 0, 1, 0, 2);
  row.params.allowed_tokens = {1, 2};
  row.banned = {1, 2};
  const SampledToken sampled = SampleOrDie({1, 2, 3, 4}, row);
  EXPECT_EQ(sampled.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sampled.status.message()),
              HasSubstr("sampling.allowed_tokens"));
  row.banned = {1};
  EXPECT_EQ(SampleOrDie({1, 2, 3, 4}, row).token, 2);
}

TEST(SamplerTest, GreedyIsAfterBiasPenaltiesAndDry) {
  const std::vector<float> logits = {1, 2, 3, 4};
  auto history = std::make_shared<SampleHistory>();
  history->tokens = {0, 1, 3, 0, 1};
  SampleRow row = Row(0, 1, 0.1f, 0, 1);
  row.history = history;
  row.params.logit_bias = {{2, 1.5f}};
  EXPECT_EQ(SampleOrDie(logits, row).token, 2);
  row.params.logit_bias.clear();
  row.params.penalties.repetition = 2;  // 0.5, 1, 3, 2
  EXPECT_EQ(SampleOrDie(logits, row).token, 2);
  row.params.penalties.repetition = 1;
  row.params.dry.multiplier = 2;  // 3 would repeat "0 1 3"
  const SampledToken sampled = SampleOrDie(logits, row);
  EXPECT_EQ(sampled.token, 2);
  // Log-probabilities are the model's own all the same.
  EXPECT_EQ(sampled.logprobs.top[0].first, 3);
  // What is not among the stages is not applied.
  row.params.stages = {SamplerStage::kPenalties, SamplerStage::kTemperature};
  EXPECT_EQ(SampleOrDie(logits, row).token, 3);
}

TEST(SamplerTest, ExtremeEditsStayNumbers) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> logits = {kMax, -kMax, kMax, 0};
  auto history = std::make_shared<SampleHistory>();
  history->tokens.assign(3000, 0);
  for (int i = 0; i < 3000; ++i) history->tokens[i] = i % 3;
  SampleRow row = Row(100, 0, 1, 0);
  row.history = history;
  row.params.logit_bias = {{0, 100}, {1, -100}};
  row.params.penalties = {.repetition = 0.01f, .frequency = -100};
  row.params.dry = {.multiplier = 100, .base = 100, .allowed_length = 1};
  for (float repetition : {0.01f, 100.0f}) {
    row.params.penalties.repetition = repetition;
    row.params.temperature = 0.001f;
    EXPECT_TRUE(SampleOrDie(logits, row).status.ok());
    row.params.stages = {SamplerStage::kTemperature, SamplerStage::kPenalties,
                         SamplerStage::kTopP, SamplerStage::kDry};
    EXPECT_TRUE(SampleOrDie(logits, row).status.ok());
  }
}

}  // namespace
}  // namespace penstock
