#include "common/model/files/testing/mutation_run.h"

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t inputs = 100000;
  uint64_t min_hits = 1;
};

bool ParseOptions(int argc, char** argv, Options& options) {
  const std::map<absl::string_view, uint64_t*> known = {
      {"--seed", &options.seed},
      {"--inputs", &options.inputs},
      {"--min-hits", &options.min_hits}};
  for (int i = 1; i < argc; i += 2) {
    auto it = known.find(argv[i]);
    if (it == known.end() || i + 1 == argc ||
        !absl::SimpleAtoi(argv[i + 1], it->second)) {
      std::fprintf(stderr, "usage: %s [--seed S] [--inputs N] [--min-hits H]\n",
                   argv[0]);
      return false;
    }
  }
  return true;
}

}  // namespace

int RunMutations(const MutationRun& run, int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) return 2;
  std::map<ModelError, uint64_t> hits;
  uint64_t accepted = 0;
  auto next = run.make_next(options.seed);
  for (uint64_t i = 0; i < options.inputs; ++i) {
    if (auto error = next()) {
      ++hits[*error];
    } else {
      ++accepted;
    }
  }
  bool all_reached = true;
  std::printf("%-22s %10s\n", "check", "hits");
  for (ModelError error : ModelErrorsOf(run.format)) {
    if (run.beyond.contains(error)) continue;
    const bool reached = hits[error] >= options.min_hits;
    all_reached = all_reached && reached;
    std::printf("%-22s %10llu%s\n", std::string(ModelErrorName(error)).c_str(),
                static_cast<unsigned long long>(hits[error]),
                reached ? "" : "  too few");
  }
  std::printf("%-22s %10llu\n", "(accepted)",
              static_cast<unsigned long long>(accepted));
  return all_reached ? 0 : 1;
}

}  // namespace penstock
