#include "common/env/testing/mutation_report.h"

#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace penstock {

std::optional<MutationOptions> ParseMutationOptions(int argc, char** argv) {
  MutationOptions options;
  const std::map<absl::string_view, uint64_t*> known = {
      {"--seed", &options.seed},
      {"--inputs", &options.inputs},
      {"--min-hits", &options.min_hits}};
  for (int i = 1; i < argc; i += 2) {
    const auto it = known.find(argv[i]);
    if (it == known.end() || i + 1 == argc ||
        !absl::SimpleAtoi(argv[i + 1], it->second)) {
      std::fprintf(stderr, "usage: %s [--seed S] [--inputs N] [--min-hits H]\n",
                   argv[0]);
      return std::nullopt;
    }
  }
  return options;
}

void MutationReport::Count(absl::string_view what, const absl::Status& status) {
  Count(absl::StrCat(what, " ", absl::StatusCodeToString(status.code())));
}

int MutationReport::Print(const std::vector<absl::string_view>& outcomes,
                          uint64_t min_hits) const {
  bool enough = true;
  for (absl::string_view outcome : outcomes) {
    const auto it = hits_.find(outcome);
    const uint64_t hits = it == hits_.end() ? 0 : it->second;
    std::printf("%-30s %10llu%s\n", std::string(outcome).c_str(),
                static_cast<unsigned long long>(hits),
                hits < min_hits ? "  too few" : "");
    enough = enough && hits >= min_hits;
  }
  return enough ? 0 : 1;
}

}  // namespace penstock
