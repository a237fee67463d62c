// What each precision of the CPU backend costs in accuracy on a model file, and
// gains in time:
//   precision_accuracy MODEL.gguf [N...]
// N: refines one block in N as well, see InputPrecision.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/model/files/model_file.h"
#include "tests/benchmarks/accuracy/accuracy.h"
#include "tests/contract/backend_makers.h"

namespace penstock {
namespace {

void Measure(const char* name, const InputPrecision& precision,
             const ModelFile& model) {
  const Accuracy accuracy =
      MeasureAccuracy(MakeCpuOf(precision), model, RealCases());
  std::printf("| %s | %.4f | %s | %.1f |\n", name, accuracy.perplexity,
              accuracy.Columns().c_str(), accuracy.cpu_seconds);
  std::fflush(stdout);
}

int Main(const std::string& path, const std::vector<std::string>& more) {
  auto model = OpenModelFile(path);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  std::printf(
      "| precision | perplexity | greedy steps | whole answers | top-5 error | "
      "CPU "
      "s |\n|---|---|---|---|---|---|\n");
  for (const char* name : {"fast", "default", "exact"}) {
    Measure(name, *ParsePrecision(name), **model);
  }
  for (const std::string& text : more) {
    InputPrecision precision;
    if (!absl::SimpleAtoi(text, &precision.refine_one_in) ||
        precision.refine_one_in < 0) {
      std::fprintf(stderr, "%s is not a count of blocks\n", text.c_str());
      return 2;
    }
    Measure(absl::StrCat("one in ", text).c_str(), precision, **model);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: precision_accuracy MODEL.gguf [N...]\n");
    return 2;
  }
  return penstock::Main(argv[1], {argv + 2, argv + argc});
}
