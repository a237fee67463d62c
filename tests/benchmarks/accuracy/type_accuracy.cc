// What the CPU backend costs in accuracy on model files of any weight types,
// each against the float oracle over the same file:
//   type_accuracy CACHE_FOLDER MODEL.gguf...
// The oracle's answers are kept in the folder: they take a minute or two a file
// the first time.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/model/files/model_file.h"
#include "tests/benchmarks/accuracy/accuracy.h"
#include "tests/benchmarks/accuracy/oracle_cases.h"
#include "tests/contract/backend_makers.h"

namespace penstock {
namespace {

// The folder with the oracle's answers over `model`.
std::string AnswersOf(const ModelFile& model, const std::string& cache) {
  const std::string folder =
      absl::StrFormat("%s/%016x", cache, model.spec().content.value());
  if (std::filesystem::exists(folder)) return folder;
  const std::string part = folder + ".part";
  WriteOracleCases(model, RealCases(), part);
  std::filesystem::rename(part, folder);
  return folder;
}

void Measure(const std::string& file, const ModelFile& model,
             const std::string& cases) {
  const double oracle = OraclePerplexity(cases);
  for (const char* name : {"fast", "default", "exact"}) {
    const Accuracy accuracy =
        MeasureAccuracy(MakeCpuOf(*ParsePrecision(name)), model, cases);
    std::printf("| %s | %s | %.4f | %.4f, %+.2f%% | %s |\n", file.c_str(), name,
                oracle, accuracy.perplexity,
                100 * (accuracy.perplexity / oracle - 1),
                accuracy.Columns().c_str());
    std::fflush(stdout);
  }
}

int Main(const std::string& cache, const std::vector<std::string>& paths) {
  std::printf(
      "| file | precision | oracle's perplexity | perplexity | greedy steps | "
      "whole answers | top-5 error |\n|---|---|---|---|---|---|---|\n");
  for (const std::string& path : paths) {
    auto model = OpenModelFile(path);
    if (!model.ok()) {
      std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
      return 1;
    }
    Measure(std::filesystem::path(path).stem(), **model,
            AnswersOf(**model, cache));
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: type_accuracy CACHE_FOLDER MODEL.gguf...\n");
    return 2;
  }
  return penstock::Main(argv[1], {argv + 2, argv + argc});
}
