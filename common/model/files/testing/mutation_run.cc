#include "common/model/files/testing/mutation_run.h"

#include <vector>

#include "absl/strings/string_view.h"
#include "common/env/testing/mutation_report.h"

namespace penstock {
int RunMutations(const MutationRun& run, int argc, char** argv) {
  const auto options = ParseMutationOptions(argc, argv);
  if (!options) return 2;
  constexpr absl::string_view kAccepted = "(accepted)";
  MutationReport report;
  auto next = run.make_next(options->seed);
  for (uint64_t i = 0; i < options->inputs; ++i) {
    const auto error = next();
    report.Count(error ? ModelErrorName(*error) : kAccepted);
  }
  std::vector<absl::string_view> outcomes = {kAccepted};
  for (ModelError error : ModelErrorsOf(run.format)) {
    if (!run.beyond.contains(error)) outcomes.push_back(ModelErrorName(error));
  }
  return report.Print(outcomes, options->min_hits);
}

}  // namespace penstock
