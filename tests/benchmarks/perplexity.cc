// Perplexity of the texts of tests/data/cases under model files:
//   perplexity MODEL.gguf...
// One line a file, with the float oracle and with the CPU backend. Texts are
// scored as token ids, so every file must have the real model's vocabulary.
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

constexpr int kBlocks = 64;

double PerplexityOfTexts(const BackendMaker& maker, const ModelFile& model,
                         const std::vector<ScoreCase>& texts) {
  ModelDriver driver(maker, model, kBlocks);
  std::vector<double> all;
  for (const ScoreCase& text : texts) {
    const std::vector<double> logprobs = ScoreText(driver, text);
    all.insert(all.end(), logprobs.begin(), logprobs.end());
  }
  return Perplexity(all);
}

int Main(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    std::fprintf(stderr, "usage: perplexity MODEL.gguf...\n");
    return 2;
  }
  const std::vector<ScoreCase> texts = ReadScoreCases(PENSTOCK_CASES);
  std::printf("%-40s %9s %9s\n", "file", "oracle", "cpu");
  for (const std::string& path : paths) {
    auto model = OpenModelFile(path);
    if (!model.ok()) {
      std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
      return 1;
    }
    std::printf("%-40s %9.4f", path.substr(path.rfind('/') + 1).c_str(),
                PerplexityOfTexts(MakeOracle(), **model, texts));
    std::fflush(stdout);
    std::printf(" %9.4f\n",
                PerplexityOfTexts(MakeCpu(CpuPath::kAuto), **model, texts));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::Main({argv + 1, argv + argc});
}
