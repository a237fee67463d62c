// What each type of KV costs in accuracy on a model file:
//   kv_accuracy MODEL.gguf
// over the texts and greedy generations of tests/data/cases, whose tokens are
// the float oracle's; so the file must have the real model's vocabulary, and
// agreement means most for the file that they were made with.
#include <algorithm>
#include <cstdio>
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

void PrintRow(const char* name, const BackendMaker& maker,
              const ModelFile& model) {
  ModelDriver driver(maker, model, kBlocks);
  std::vector<double> all;
  for (const ScoreCase& text : ReadScoreCases(PENSTOCK_CASES)) {
    const std::vector<double> logprobs = ScoreText(driver, text);
    all.insert(all.end(), logprobs.begin(), logprobs.end());
  }
  AccuracySummary summary;
  int prompts = 0, equal_prompts = 0;
  for (const GenerationCase& golden : ReadGenerationCases(PENSTOCK_CASES)) {
    const std::vector<StepError> steps = TeacherForce(driver, golden, kChunk);
    ++prompts;
    // Greedy output is the same up to the first other best token.
    equal_prompts +=
        std::all_of(steps.begin(), steps.end(),
                    [](const StepError& step) { return step.argmax_equal; });
    summary.Add(steps);
  }
  const KvLayout& layout = driver.backend().kv_layout();
  std::printf("| %-12s | %6.0f | %8.4f | %4d of %d | %3d of %d | %.3f |\n",
              name, static_cast<double>(layout.block_bytes()) / kBlockTokens,
              Perplexity(all), summary.steps() - summary.argmax_different(),
              summary.steps(), equal_prompts, prompts, summary.top5_mean());
  std::fflush(stdout);
}

int Main(const std::string& path) {
  auto model = OpenModelFile(path);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  std::printf(
      "| KV | bytes a token | perplexity | greedy steps | whole answers | "
      "top-5 error |\n|---|---|---|---|---|---|\n");
  PrintRow("f32 (oracle)", MakeOracle(), **model);
  PrintRow("f16", MakeCpu(CpuPath::kAuto), **model);
  for (KvType type : SmallerKvTypes()) {
    PrintRow(Traits(type).name, MakeCpuKeeping(type), **model);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kv_accuracy MODEL.gguf\n");
    return 2;
  }
  return penstock::Main(argv[1]);
}
