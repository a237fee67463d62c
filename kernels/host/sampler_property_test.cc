// Token for token against the naive sampler, over random logits, parameters,
// histories and orders of stages.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"
#include "kernels/host/naive_sampler.h"
#include "kernels/host/sampler.h"

namespace penstock {
namespace {

constexpr int kHistoryTokens = 6;  // histories repeat themselves

class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(seed) {}

  // Half of them favour the tokens that histories have.
  std::vector<float> Logits(int size) {
    std::vector<float> logits(size);
    const float favour = Often(2) ? 4.0f : 0.0f;
    const double spread = 1 + random_.Uniform() * 6;
    for (float& logit : logits) {
      logit = static_cast<float>(
          (random_.Uniform() + random_.Uniform() + random_.Uniform() - 1.5) *
          spread);
    }
    for (int id = 0; id < std::min(size, kHistoryTokens); ++id) {
      logits[id] += favour;
    }
    return logits;
  }

  SampleRow Row(int vocabulary) {
    SampleRow row;
    row.params.seed = random_.Next();
    row.sample = static_cast<uint32_t>(random_.Below(4));
    row.position = random_.Below(1000);
    row.history = History(vocabulary);
    Cuts(row.params);
    Edits(vocabulary, row);
    if (Often(4)) Stages(row.params);
    if (Often(8)) row.params.mirostat.on = true;
    if (Often(8)) row.params.temperature = 0;
    return row;
  }

  bool Often(int one_in) { return random_.Below(one_in) == 0; }

 private:
  float Between(double low, double high) {
    return static_cast<float>(low + random_.Uniform() * (high - low));
  }

  std::shared_ptr<SampleHistory> History(int vocabulary) {
    auto history = std::make_shared<SampleHistory>();
    // Few different tokens: runs repeat.
    const uint64_t different = 2 + random_.Below(kHistoryTokens - 1);
    for (uint64_t n = random_.Below(60); n > 0; --n) {
      history->tokens.push_back(static_cast<TokenId>(
          random_.Below(std::min<uint64_t>(different, vocabulary))));
    }
    history->prompt_tokens =
        static_cast<int>(random_.Below(history->tokens.size() + 1));
    if (Often(2)) history->dry_breakers = {1};
    history->mirostat_mu = Between(-0.5, 8);
    return history;
  }

  void Cuts(SamplingParams& p) {
    if (Often(2)) p.temperature = Between(0.2, 3);
    if (Often(4)) p.top_k = 1 + static_cast<int>(random_.Below(50));
    if (Often(4)) p.top_p = Between(0.05, 1);
    if (Often(4)) p.min_p = Between(0, 0.5);
    if (Often(4)) p.typical_p = Between(0.05, 1);
    if (Often(4)) p.top_n_sigma = Between(0.1, 3);
    if (Often(4)) p.xtc = {Between(0, 1), Between(0.01, 0.6)};
  }

  void Edits(int vocabulary, SampleRow& row) {
    SamplingParams& p = row.params;
    auto window = [&] { return static_cast<int>(random_.Below(70)) - 1; };
    if (Often(3)) {
      p.penalties = {Between(0.5, 2), Between(-1, 1), Between(-1, 1), window()};
    }
    if (Often(3)) {
      p.dry = {Between(0.1, 2),
               Between(1, 2),
               1 + static_cast<int>(random_.Below(4)),
               window(),
               {}};
    }
    for (TokenId id = 0; id < vocabulary; ++id) {
      if (Often(vocabulary)) p.logit_bias.push_back({id, Between(-5, 5)});
    }
    if (Often(4)) row.banned = {0, static_cast<TokenId>(vocabulary - 1)};
    if (Often(4)) {
      for (TokenId id = 1; id + 1 < vocabulary; id += 2) {
        p.allowed_tokens.push_back(id);
      }
    }
  }

  // A random order, of some stages or all.
  void Stages(SamplingParams& p) {
    std::vector<SamplerStage> left;
    for (int i = 0; i < kSamplerStageCount; ++i) {
      left.push_back(static_cast<SamplerStage>(i));
    }
    for (uint64_t n = 1 + random_.Below(kSamplerStageCount); n > 0; --n) {
      const uint64_t pick = random_.Below(left.size());
      p.stages.push_back(left[pick]);
      left.erase(left.begin() + pick);
    }
  }

  SeededRandom random_;
};

void ExpectTheNaiveDraw(const std::vector<float>& logits, const SampleRow& row,
                        Sampler& sampler) {
  const double coin = SampleUniform(row.params.seed, row.sample, row.position,
                                    SampleStream::kXtc);
  const NaiveDraw naive =
      NaivelyDraw(logits, row, coin < row.params.xtc.probability);
  const TokenId expected =
      TokenAt(naive, SampleUniform(row.params.seed, row.sample, row.position));
  const auto sampled = sampler.Sample(logits, row);
  ASSERT_TRUE(sampled.ok()) << sampled.status();
  ASSERT_TRUE(sampled->status.ok()) << sampled->status;
  ASSERT_EQ(sampled->token, expected);
  if (row.params.mirostat.on && row.params.temperature > 0) {
    const double surprise = -std::log2(naive.shares[expected]);
    EXPECT_NEAR(sampled->mirostat_mu,
                row.history->mirostat_mu - 0.1 * (surprise - 5), 1e-5);
  }
}

TEST(SamplerPropertyTest, DrawsWhatTheDefinitionsSay) {
  RandomRows rows(7);
  Sampler sampler;
  for (int i = 0; i < 1500; ++i) {
    SCOPED_TRACE(i);
    const int vocabulary = i % 7 == 0 ? 5 : 40 + i % 100;
    const std::vector<float> logits = rows.Logits(vocabulary);
    SampleRow row = rows.Row(vocabulary);
    for (int draw = 0; draw < 4; ++draw) {
      ++row.position;
      ExpectTheNaiveDraw(logits, row, sampler);
      if (HasFatalFailure()) return;
    }
  }
}

// Ties everywhere: the canonical order alone decides.
TEST(SamplerPropertyTest, TiesGoByAscendingId) {
  RandomRows rows(8);
  Sampler sampler;
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    std::vector<float> logits = rows.Logits(60);
    for (float& logit : logits) logit = std::round(logit);
    SampleRow row;
    row.params.temperature = i % 5 == 0 ? 0 : 1;
    row.params.top_k = 1 + i % 30;
    row.position = i;
    const NaiveDraw naive = NaivelyDraw(logits, row, false);
    ASSERT_EQ(sampler.Sample(logits, row)->token,
              TokenAt(naive, SampleUniform(0, 0, i)));
  }
}

// In a closed loop mirostat brings the mean surprise to tau.
TEST(SamplerPropertyTest, MirostatKeepsTheSurpriseThatWasAskedFor) {
  RandomRows rows(9);
  for (float tau : {2.0f, 4.0f}) {
    auto history = std::make_shared<SampleHistory>();
    history->mirostat_mu = 2 * tau;
    SampleRow row;
    row.params.mirostat = {.on = true, .tau = tau, .eta = 0.1f};
    row.history = history;
    Sampler sampler;
    double surprise = 0;
    constexpr int kSteps = 3000;
    for (int i = 0; i < kSteps; ++i) {
      const std::vector<float> logits = rows.Logits(400);
      row.position = i;
      const NaiveDraw naive = NaivelyDraw(logits, row, false);
      const auto sampled = sampler.Sample(logits, row);
      ASSERT_TRUE(sampled.ok());
      surprise -= std::log2(naive.shares[sampled->token]);
      history->mirostat_mu = sampled->mirostat_mu;
    }
    EXPECT_NEAR(surprise / kSteps, tau, 0.05) << tau;
  }
}

}  // namespace
}  // namespace penstock
