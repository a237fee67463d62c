#include "tests/benchmarks/accuracy/accuracy.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/contract/model_cases.h"

namespace penstock {
namespace {

constexpr int kBlocks = 128;
constexpr int kChunk = 512;

}  // namespace

std::string RealCases() { return PENSTOCK_CASES; }

Accuracy MeasureAccuracy(const BackendMaker& maker, const ModelFile& model,
                         const std::string& cases) {
  Accuracy accuracy;
  ModelDriver driver(maker, model, kBlocks);
  const std::clock_t began = std::clock();
  std::vector<double> all;
  for (const ScoreCase& text : ReadScoreCases(cases)) {
    const std::vector<double> logprobs = ScoreText(driver, text);
    all.insert(all.end(), logprobs.begin(), logprobs.end());
  }
  accuracy.perplexity = Perplexity(all);
  for (const GenerationCase& golden : ReadGenerationCases(cases)) {
    const std::vector<StepError> steps = TeacherForce(driver, golden, kChunk);
    ++accuracy.prompts;
    // Greedy output is the same up to the first other best token.
    accuracy.equal +=
        std::all_of(steps.begin(), steps.end(),
                    [](const StepError& step) { return step.argmax_equal; });
    accuracy.summary.Add(steps);
  }
  accuracy.cpu_seconds =
      static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  accuracy.block_bytes =
      static_cast<double>(driver.backend().kv_layout().block_bytes());
  accuracy.kv_type = driver.backend().kv_layout().type;
  return accuracy;
}

std::string Accuracy::Columns() const {
  return absl::StrFormat("%d of %d | %d of %d | %.3f",
                         summary.steps() - summary.argmax_different(),
                         summary.steps(), equal, prompts, summary.top5_mean());
}

double OraclePerplexity(const std::string& cases) {
  std::vector<double> golden;
  for (const ScoreCase& text : ReadScoreCases(cases)) {
    golden.insert(golden.end(), text.logprobs.begin(), text.logprobs.end());
  }
  return Perplexity(golden);
}

}  // namespace penstock
