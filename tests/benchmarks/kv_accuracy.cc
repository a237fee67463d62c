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

void PrintRow(const char* name, double bytes, double perplexity,
              const AccuracySummary& summary, int equal, int prompts) {
  std::printf("| %s | %.0f | %.4f | %d of %d | %d of %d | %.3f |\n", name,
              bytes, perplexity, summary.steps() - summary.argmax_different(),
              summary.steps(), equal, prompts, summary.top5_mean());
  std::fflush(stdout);
}

void Measure(const BackendMaker& maker, const ModelFile& model) {
  ModelDriver driver(maker, model, kBlocks);
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
  const KvLayout& layout = driver.backend().kv_layout();
  PrintRow(Traits(layout.type).name,
           static_cast<double>(layout.block_bytes()) / kBlockTokens,
           Perplexity(all), summary, equal, prompts);
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
  std::vector<double> golden;
  for (const ScoreCase& text : ReadScoreCases(PENSTOCK_CASES)) {
    golden.insert(golden.end(), text.logprobs.begin(), text.logprobs.end());
  }
  std::printf("| all in f32 | | %.4f | | | |\n", Perplexity(golden));
  Measure(MakeCpu(CpuPath::kAuto), **model);
  for (KvType type : SmallerKvTypes()) {
    Measure(MakeCpuKeeping(type), **model);
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
