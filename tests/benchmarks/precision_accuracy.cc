// What each precision of the CPU backend costs in accuracy on a model file, and
// gains in time:
//   precision_accuracy MODEL.gguf [TERMS...]
// TERMS: seven digits, 1 or 2, the terms of ActivationTerms in order.
// over the texts and greedy generations of tests/data/cases, whose tokens are
// the float oracle's; so the file must have the real model's vocabulary, and
// agreement means most for the file that they were made with.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "common/model/files/model_file.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/model_driver.h"

namespace penstock {
namespace {

constexpr int kBlocks = 128;
constexpr int kChunk = 512;

void Measure(const char* name, const ActivationTerms& terms,
             const ModelFile& model) {
  ModelDriver driver(MakeCpuOf(terms), model, kBlocks);
  const std::clock_t began = std::clock();
  std::vector<double> all;
  for (const ScoreCase& text : ReadScoreCases(PENSTOCK_CASES)) {
    const std::vector<double> logprobs = ScoreText(driver, text);
    all.insert(all.end(), logprobs.begin(), logprobs.end());
  }
  AccuracySummary summary;
  int prompts = 0, equal = 0;
  for (const GenerationCase& golden : ReadGenerationCases(PENSTOCK_CASES)) {
    const std::vector<StepError> steps = TeacherForce(driver, golden, kChunk);
    ++prompts;
    // Greedy output is the same up to the first other best token.
    equal += std::all_of(steps.begin(), steps.end(), [](const StepError& step) {
      return step.argmax_equal;
    });
    summary.Add(steps);
  }
  std::printf("| %s | %.4f | %d of %d | %d of %d | %.3f | %.1f |\n", name,
              Perplexity(all), summary.steps() - summary.argmax_different(),
              summary.steps(), equal, prompts, summary.top5_mean(),
              static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  std::fflush(stdout);
}

// Seven digits; nothing if they are anything else.
std::optional<ActivationTerms> ParseTerms(const std::string& digits) {
  ActivationTerms terms;
  int* const all[] = {&terms.query,   &terms.key,  &terms.value, &terms.output,
                      &terms.gate_up, &terms.down, &terms.head};
  if (digits.size() != std::size(all)) return std::nullopt;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] != '1' && digits[i] != '2') return std::nullopt;
    *all[i] = digits[i] - '0';
  }
  return terms;
}

int Main(const std::string& path, const std::vector<std::string>& more) {
  auto model = OpenModelFile(path);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  std::printf(
      "| terms | perplexity | greedy steps | whole answers | top-5 error | CPU "
      "s |\n|---|---|---|---|---|---|\n");
  for (const char* name : {"fast", "default", "exact"}) {
    Measure(name, *ParsePrecision(name), **model);
  }
  for (const std::string& digits : more) {
    const auto terms = ParseTerms(digits);
    if (!terms.has_value()) {
      std::fprintf(stderr, "%s is not seven digits, 1 or 2\n", digits.c_str());
      return 2;
    }
    Measure(digits.c_str(), *terms, **model);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: precision_accuracy MODEL.gguf [TERMS...]\n");
    return 2;
  }
  return penstock::Main(argv[1], {argv + 2, argv + argc});
}
