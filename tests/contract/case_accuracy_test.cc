#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/model_driver.h"
#include "tests/contract/test_models.h"
#include "tests/contract/transcript.h"

namespace penstock {
namespace {

constexpr char kCases[] = PENSTOCK_TEST_DATA "/cases";
constexpr int kBlocks = 128;  // 2048 tokens
constexpr int kChunk = 512;

TEST(OracleAccuracyTest, GenerationsAreExact) {
  ModelDriver driver(MakeOracle(), RealModel(), kBlocks);
  AccuracySummary summary;
  for (const GenerationCase& golden : ReadGenerationCases(kCases)) {
    SCOPED_TRACE(golden.name);
    std::vector<StepError> steps = TeacherForce(driver, golden, kChunk);
    for (const StepError& step : steps) {
      ASSERT_TRUE(step.argmax_equal);
      ASSERT_LE(step.top5, 0.002);
    }
    summary.Add(steps);
  }
  EXPECT_EQ(summary.steps(), 1175);
  std::cout << "oracle: " << summary.ToString() << "\n";
}

// Feeding golden tokens and drawing them must come to the same.
TEST(OracleAccuracyTest, FreeRunningGenerationIsExact) {
  ModelDriver driver(MakeOracle(), RealModel(), kBlocks);
  int run = 0;
  for (const GenerationCase& golden : ReadGenerationCases(kCases)) {
    if (golden.prompt.size() > 64 || run == 3) continue;
    SCOPED_TRACE(golden.name);
    DrivenSequence sequence;
    sequence.tokens = golden.prompt;
    const SampledToken first = driver.Prefill(sequence, kChunk)[0];
    std::vector<TokenId> drawn;
    for (const SampledToken& token : driver.Decode(
             sequence, first, static_cast<int>(golden.generated.size()) - 1)) {
      drawn.push_back(token.token);
    }
    EXPECT_EQ(drawn, golden.generated);
    driver.Release(sequence);
    ++run;
  }
  EXPECT_EQ(run, 3);
}

TEST(OracleAccuracyTest, TextsScoreWithinTheTightTolerance) {
  ModelDriver driver(MakeOracle(), RealModel(), kBlocks);
  for (const ScoreCase& golden : ReadScoreCases(kCases)) {
    SCOPED_TRACE(golden.name);
    const std::vector<double> logprobs = ScoreText(driver, golden);
    ASSERT_EQ(logprobs.size(), golden.logprobs.size());
    for (size_t i = 0; i < logprobs.size(); ++i) {
      ASSERT_NEAR(logprobs[i], golden.logprobs[i], 0.002) << "at " << i;
    }
    EXPECT_NEAR(Perplexity(logprobs) / golden.perplexity, 1, 0.001);
  }
}

// What a tap saw of one layer: rows of `width` values, by position.
struct Seen {
  std::vector<float> values;
  size_t width = 0;
};

void ExpectLayer(const LayerCase& golden, const Seen& seen) {
  SCOPED_TRACE(golden.at);
  ASSERT_EQ(seen.values.size(), golden.ids.size() * seen.width);
  for (size_t position = 0; position < golden.ids.size(); ++position) {
    const float* row = seen.values.data() + position * seen.width;
    double squares = 0, max_abs = 0;
    size_t best = 0;
    for (size_t i = 0; i < seen.width; ++i) {
      squares += double{row[i]} * row[i];
      max_abs = std::max(max_abs, std::abs(double{row[i]}));
      if (row[i] > row[best]) best = i;
    }
    const double rms = std::sqrt(squares / seen.width);
    EXPECT_NEAR(rms / golden.rms[position], 1, 1e-5);
    EXPECT_NEAR(max_abs / golden.max_abs[position], 1, 1e-5);
    if (!golden.argmax.empty()) {
      EXPECT_EQ(static_cast<TokenId>(best), golden.argmax[position]);
    }
  }
  const float* last = seen.values.data() + seen.values.size() - seen.width;
  const double scale = golden.rms.back();
  for (size_t i = 0; i < golden.last_first8.size(); ++i) {
    EXPECT_NEAR(last[i] / scale, golden.last_first8[i] / scale, 1e-4);
  }
}

TEST(OracleAccuracyTest, EachLayerIsExact) {
  const std::vector<LayerCase> golden = ReadLayerCases(kCases);
  const ModelSpec& spec = RealModel().spec();
  // Embedding, each block, logits: as the cases are ordered. Written on the
  // backend's thread, read after the step's result.
  std::vector<Seen> seen(spec.layers + 2);
  OracleObserver observer;
  observer.residual = [&](int layers_done, absl::Span<const float> residual) {
    seen[layers_done] = {{residual.begin(), residual.end()},
                         static_cast<size_t>(spec.hidden)};
  };
  observer.logits = [&](int32_t, absl::Span<const float> logits) {
    seen.back().width = spec.vocab_size;
    seen.back().values.insert(seen.back().values.end(), logits.begin(),
                              logits.end());
  };
  ModelDriver driver(MakeOracle(observer), RealModel(), kBlocks);
  DrivenSequence sequence;
  sequence.tokens = golden[0].ids;
  driver.Prefill(sequence, kChunk, static_cast<int>(golden[0].ids.size()));

  ASSERT_EQ(golden.size(), seen.size());
  EXPECT_EQ(golden.front().at, "embedding");
  EXPECT_EQ(golden.back().at, "logits");
  for (size_t i = 0; i < golden.size(); ++i) ExpectLayer(golden[i], seen[i]);
}

// As `--precision` names it.
BackendMaker MakeCpuAt(absl::string_view precision) {
  return MakeCpuOf(*ParsePrecision(precision));
}

// Steps of the golden generations whose prompts are no longer than `most`, fed
// the golden tokens.
AccuracySummary AccuracyOf(absl::string_view precision, size_t most) {
  ModelDriver driver(MakeCpuAt(precision), RealModel(), kBlocks);
  AccuracySummary summary;
  for (const GenerationCase& golden : ReadGenerationCases(kCases)) {
    if (golden.prompt.size() > most) continue;
    summary.Add(TeacherForce(driver, golden, kChunk));
  }
  std::cout << driver.backend().caps().name << " " << precision << ": "
            << summary.ToString() << "\n";
  return summary;
}

// As the README's tolerances for quantised activations ask, but stricter: no
// further from the golden outputs than the peer there.
TEST(QuantisedAccuracyTest, GenerationsStayNearTheGoldenOnes) {
  const AccuracySummary summary = AccuracyOf("default", 1 << 20);
  EXPECT_EQ(summary.steps(), 1175);
  EXPECT_LT(summary.largest_margin_missed(), 1.0);
  EXPECT_LE(summary.argmax_different(), 0.02 * summary.steps());
  EXPECT_LE(summary.top5_mean(), 0.06);
  EXPECT_LT(summary.top5_quantile(1), 2.0);
}

// docs/precision.md has the figures over all prompts.
TEST(QuantisedAccuracyTest, EachPrecisionIsAsExactAsItsNameSays) {
  struct Bound {
    const char* precision;
    double top5;
  };
  for (const Bound& bound :
       {Bound{"fast", 0.19}, Bound{"default", 0.07}, Bound{"exact", 0.005}}) {
    SCOPED_TRACE(bound.precision);
    const AccuracySummary summary = AccuracyOf(bound.precision, 64);
    EXPECT_GE(summary.steps(), 400);
    EXPECT_LE(summary.top5_mean(), bound.top5);
  }
}

TEST(QuantisedAccuracyTest, TextsScoreWithinHalfAPercentTogether) {
  for (const char* precision : {"fast", "default", "exact"}) {
    ModelDriver driver(MakeCpuAt(precision), RealModel(), kBlocks);
    std::vector<double> ours, oracles;
    for (const ScoreCase& golden : ReadScoreCases(kCases)) {
      const std::vector<double> logprobs = ScoreText(driver, golden);
      EXPECT_NEAR(Perplexity(logprobs) / golden.perplexity, 1, 0.03)
          << golden.name;
      ours.insert(ours.end(), logprobs.begin(), logprobs.end());
      oracles.insert(oracles.end(), golden.logprobs.begin(),
                     golden.logprobs.end());
    }
    std::cout << precision << ": perplexity " << Perplexity(ours) << ", golden "
              << Perplexity(oracles) << "\n";
    EXPECT_NEAR(Perplexity(ours) / Perplexity(oracles), 1, 0.005);
  }
}

// The scalar twin and every vector path, on the real model: the same bits, so
// one path's accuracy is that of all.
TEST(QuantisedAccuracyTest, EveryPathGivesTheSameBitsOnShortCases) {
  int run = 0;
  std::vector<std::vector<SampledToken>> expected;
  for (CpuPath path : CpuPaths()) {
    ModelDriver driver(MakeCpu(path), RealModel(), kBlocks);
    size_t n = 0;
    for (const GenerationCase& golden : ReadGenerationCases(kCases)) {
      if (golden.prompt.size() > 17) continue;
      DrivenSequence sequence;
      sequence.tokens = golden.prompt;
      sequence.tokens.insert(sequence.tokens.end(), golden.generated.begin(),
                             golden.generated.begin() + 4);
      std::vector<SampledToken> drawn = driver.Prefill(sequence, kChunk, 5);
      driver.Release(sequence);
      if (path == CpuPath::kScalar) expected.push_back(drawn);
      SCOPED_TRACE(golden.name + " on " + driver.backend().caps().name);
      ExpectSame(drawn, expected[n++]);
      ++run;
    }
  }
  EXPECT_GE(run, 6);
}

}  // namespace
}  // namespace penstock
