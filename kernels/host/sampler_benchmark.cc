// A draw from a vocabulary of a usual size, by the samplers that it passes.

#include "kernels/host/sampler.h"

#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/env/random.h"

namespace penstock {
namespace {

constexpr int kVocabulary = 49152;
constexpr int kHistory = 2048;

// A peak of a few tokens and a long tail, as models give.
std::vector<float> Logits() {
  SeededRandom random(1);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) {
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += random.Uniform();
    logit = static_cast<float>((sum - 3) * 6);
  }
  return logits;
}

SampleRow Row(float temperature) {
  SampleRow row;
  row.params.temperature = temperature;
  return row;
}

void Draw(benchmark::State& state, SampleRow row) {
  const std::vector<float> logits = Logits();
  auto history = std::make_shared<SampleHistory>();
  SeededRandom random(2);
  for (int i = 0; i < kHistory; ++i) {
    history->tokens.push_back(static_cast<TokenId>(random.Below(1000)));
  }
  history->prompt_tokens = kHistory / 2;
  history->mirostat_mu = 10;
  row.history = history;
  Sampler sampler;
  for (auto _ : state) {
    ++row.position;
    auto sampled = sampler.Sample(logits, row);
    CHECK(sampled.ok());
    benchmark::DoNotOptimize(sampled->token);
  }
}

#define PENSTOCK_BENCHMARK_DRAW(name, temperature, ...) \
  BENCHMARK_CAPTURE(Draw, name,                         \
                    [] {                                \
                      SampleRow row = Row(temperature); \
                      SamplingParams& p = row.params;   \
                      __VA_ARGS__;                      \
                      return row;                       \
                    }())                                \
      ->Unit(benchmark::kMicrosecond)

PENSTOCK_BENCHMARK_DRAW(greedy, 0, p.top_p = 1);
PENSTOCK_BENCHMARK_DRAW(plain, 1, p.top_p = 1);
PENSTOCK_BENCHMARK_DRAW(cool, 0.7f, p.top_p = 1);
PENSTOCK_BENCHMARK_DRAW(top_p, 1, p.top_p = 0.9f);
PENSTOCK_BENCHMARK_DRAW(top_k, 0.7f, p.top_k = 40);
PENSTOCK_BENCHMARK_DRAW(top_k_top_p, 0.7f, p.top_k = 40; p.top_p = 0.9f);
PENSTOCK_BENCHMARK_DRAW(logprobs, 1, p.logprobs = 5);
PENSTOCK_BENCHMARK_DRAW(min_p, 1, p.min_p = 0.05f);
PENSTOCK_BENCHMARK_DRAW(typical_p, 1, p.typical_p = 0.9f);
PENSTOCK_BENCHMARK_DRAW(top_n_sigma, 1, p.top_n_sigma = 1);
PENSTOCK_BENCHMARK_DRAW(xtc, 1, p.xtc.probability = 1);
PENSTOCK_BENCHMARK_DRAW(penalties, 1, p.penalties.repetition = 1.1f);
PENSTOCK_BENCHMARK_DRAW(dry, 1, p.dry.multiplier = 0.8f);
PENSTOCK_BENCHMARK_DRAW(mirostat, 1, p.mirostat.on = true);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
