// Frequencies of drawn tokens against the closed form of each sampler's
// distribution, by Pearson's chi-square test. Seeds are fixed, so a result
// never changes.

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"
#include "kernels/host/naive_sampler.h"
#include "kernels/host/sampler.h"

namespace penstock {
namespace {

constexpr int kVocabulary = 96;
constexpr int kDraws = 30000;
constexpr double kLeastP = 0.001;  // of a result that is not refused

// The chance that a chi-square variable of so many degrees exceeds x: the upper
// incomplete gamma function, by its series or its continued fraction
// (Numerical Recipes, 6.2).
double ChanceAbove(double x, int degrees) {
  if (degrees == 0) return x == 0 ? 1 : 0;
  const double a = degrees / 2.0, half = x / 2;
  if (half <= 0) return 1;
  const double scale = std::exp(-half + a * std::log(half) - std::lgamma(a));
  if (half < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < 1000; ++n) sum += term *= half / (a + n);
    return 1 - sum * scale;
  }
  double b = half + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int n = 1; n < 1000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
  }
  return scale * h;
}

TEST(ChiSquareTest, ChancesAreThoseOfTheTables) {
  EXPECT_NEAR(ChanceAbove(3.841, 1), 0.05, 1e-4);
  EXPECT_NEAR(ChanceAbove(18.307, 10), 0.05, 1e-4);
  EXPECT_NEAR(ChanceAbove(9.342, 10), 0.5, 1e-4);
  EXPECT_NEAR(ChanceAbove(149.449, 100), 0.001, 1e-5);
}

struct Case {
  const char* name;
  void (*set)(SampleRow& row);
};

// Text in which the end, 4 5 6, occurred before with 7 and with 8 after it.
std::shared_ptr<SampleHistory> History() {
  auto history = std::make_shared<SampleHistory>();
  history->tokens = {4, 5, 6, 7, 1, 5, 6, 8, 20, 21, 20, 22, 4, 5, 6};
  history->prompt_tokens = 6;
  history->dry_breakers = {1};
  history->mirostat_mu = 5.5f;
  return history;
}

std::vector<Case> Cases() {
  return {
      {"temperature 1", [](SampleRow& r) {}},
      {"temperature 0.5", [](SampleRow& r) { r.params.temperature = 0.5f; }},
      {"temperature 2", [](SampleRow& r) { r.params.temperature = 2; }},
      {"top-k 12", [](SampleRow& r) { r.params.top_k = 12; }},
      {"top-p 0.8", [](SampleRow& r) { r.params.top_p = 0.8f; }},
      {"min-p 0.1", [](SampleRow& r) { r.params.min_p = 0.1f; }},
      {"typical-p 0.6", [](SampleRow& r) { r.params.typical_p = 0.6f; }},
      {"top-n-sigma 1", [](SampleRow& r) { r.params.top_n_sigma = 1; }},
      {"XTC 1, 0.05",
       [](SampleRow& r) {
         r.params.xtc = {1, 0.05f};
       }},
      {"XTC 0.4, 0.05",
       [](SampleRow& r) {
         r.params.xtc = {0.4f, 0.05f};
       }},
      {"repetition 1.3",
       [](SampleRow& r) { r.params.penalties.repetition = 1.3f; }},
      {"frequency 0.7",
       [](SampleRow& r) { r.params.penalties.frequency = 0.7f; }},
      {"presence 1.5",
       [](SampleRow& r) { r.params.penalties.presence = 1.5f; }},
      {"DRY 0.8", [](SampleRow& r) { r.params.dry.multiplier = 0.8f; }},
      {"mirostat, mu 5.5", [](SampleRow& r) { r.params.mirostat.on = true; }},
      {"logit bias",
       [](SampleRow& r) {
         r.params.logit_bias = {{3, 2.5f}, {30, -2}, {31, -100}};
       }},
      {"allowed and banned",
       [](SampleRow& r) {
         r.params.allowed_tokens = {2, 3, 5, 7, 11, 13, 17, 19, 23};
         r.banned = {5, 6, 7};
       }},
      {"all together",
       [](SampleRow& r) {
         r.params.temperature = 1.4f;
         r.params.top_k = 60;
         r.params.top_p = 0.95f;
         r.params.min_p = 0.02f;
         r.params.typical_p = 0.97f;
         r.params.top_n_sigma = 3;
         r.params.penalties = {1.2f, 0.3f, 0.4f, 12};
         r.params.dry.multiplier = 0.5f;
         r.params.xtc = {0.5f, 0.06f};
         r.params.logit_bias = {{9, 1}};
       }},
      {"the other way round",
       [](SampleRow& r) {
         r.params.temperature = 0.8f;
         r.params.top_k = 60;
         r.params.top_p = 0.95f;
         r.params.min_p = 0.02f;
         r.params.penalties = {1.2f, 0.3f, 0.4f, 12};
         r.params.xtc = {0.5f, 0.06f};
         for (int i = kSamplerStageCount; i > 0; --i) {
           r.params.stages.push_back(static_cast<SamplerStage>(i - 1));
         }
       }},
  };
}

std::vector<float> RandomLogits(uint64_t seed) {
  SeededRandom random(seed);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += random.Uniform();
    logit = static_cast<float>((sum - 2) * 3);
  }
  return logits;
}

std::vector<double> ClosedForm(const std::vector<float>& logits,
                               const SampleRow& row) {
  const double coin = row.params.xtc.probability;
  const std::vector<double> plain = NaivelyDraw(logits, row, false).shares;
  const std::vector<double> excluded = NaivelyDraw(logits, row, true).shares;
  std::vector<double> shares(logits.size());
  for (size_t id = 0; id < shares.size(); ++id) {
    shares[id] = (1 - coin) * plain[id] + coin * excluded[id];
  }
  return shares;
}

struct Statistic {
  double chi_square = 0;
  int degrees = -1;
};

// Cells that expect fewer than five draws are counted as one.
Statistic Compare(const std::vector<int>& counts,
                  const std::vector<double>& shares) {
  Statistic result;
  double rare = 0, rare_count = 0;
  auto add = [&](double count, double expected) {
    result.chi_square += (count - expected) * (count - expected) / expected;
    ++result.degrees;
  };
  for (size_t id = 0; id < shares.size(); ++id) {
    const double expected = shares[id] * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[id], 0) << "token " << id << " may not be drawn";
    } else if (expected < 5) {
      rare += expected;
      rare_count += counts[id];
    } else {
      add(counts[id], expected);
    }
  }
  if (rare > 0) add(rare_count, rare);
  return result;
}

TEST(ChiSquareTest, EverySamplerDrawsItsClosedForm) {
  std::printf("%-22s %10s %8s %8s\n", "sampler", "chi-square", "degrees", "p");
  uint64_t seed = 100;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    SampleRow row;
    row.params.seed = ++seed;
    row.sample = 3;
    row.history = History();
    c.set(row);
    const std::vector<float> logits = RandomLogits(seed);
    std::vector<int> counts(logits.size());
    Sampler sampler;
    for (int i = 0; i < kDraws; ++i) {
      row.position = i;
      const auto sampled = sampler.Sample(logits, row);
      ASSERT_TRUE(sampled.ok() && sampled->status.ok());
      ++counts[sampled->token];
    }
    const Statistic statistic = Compare(counts, ClosedForm(logits, row));
    const double p = ChanceAbove(statistic.chi_square, statistic.degrees);
    std::printf("%-22s %10.2f %8d %8.4f\n", c.name, statistic.chi_square,
                statistic.degrees, p);
    EXPECT_GT(p, kLeastP);
    EXPECT_GT(statistic.degrees, 3);
  }
}

}  // namespace
}  // namespace penstock
