// What each precision of the CPU backend costs in accuracy on a model file, and
// gains in time:
//   precision_accuracy MODEL.gguf [TERMS...]
// TERMS: seven digits, 1 or 2, the terms of ActivationTerms in order.
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "common/model/files/model_file.h"
#include "tests/benchmarks/accuracy/accuracy.h"
#include "tests/contract/backend_makers.h"

namespace penstock {
namespace {

void Measure(const char* name, const ActivationTerms& terms,
             const ModelFile& model) {
  const Accuracy accuracy =
      MeasureAccuracy(MakeCpuOf(terms), model, RealCases());
  std::printf("| %s | %.4f | %s | %.1f |\n", name, accuracy.perplexity,
              accuracy.Columns().c_str(), accuracy.cpu_seconds);
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
