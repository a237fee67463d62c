// Holds the prefix index to the oracle over random operations; see
// PrefixExercise. One input is one operation.

#include <string>
#include <vector>

#include "common/env/testing/mutation_report.h"
#include "router/core/testing/prefix_exercise.h"

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::MutationReport report;
  penstock::PrefixExercise exercise(options->seed);
  for (uint64_t i = 0; i < options->inputs; ++i) {
    report.Count(exercise.Next());
  }
  const std::vector<std::string> outcomes =
      penstock::PrefixExercise::Outcomes();
  return report.Print({outcomes.begin(), outcomes.end()}, options->min_hits);
}
