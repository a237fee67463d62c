#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/model_driver.h"

namespace penstock {
namespace {

constexpr char kCases[] = PENSTOCK_TEST_DATA "/cases";
constexpr int kBlocks = 128;  // 2048 tokens
constexpr int kChunk = 512;

const ModelFile& RealModel() {
  static const std::unique_ptr<ModelFile>* model = [] {
    auto opened =
        OpenModelFile(PENSTOCK_MODELS "/SmolLM2-135M-Instruct.Q4_1.gguf");
    CHECK(opened.ok()) << opened.status().ToString();
    return new std::unique_ptr<ModelFile>(*std::move(opened));
  }();
  return **model;
}

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

}  // namespace
}  // namespace penstock
