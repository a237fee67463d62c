// Feeds the index from workers whose event streams break; see FeedExercise. One
// input is one thing that happens.

#include <string>
#include <vector>

#include "common/env/testing/mutation_report.h"
#include "router/core/testing/feed_exercise.h"

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::MutationReport report;
  penstock::FeedExercise exercise(options->seed);
  for (uint64_t i = 0; i < options->inputs; ++i) {
    report.Count(exercise.Next());
  }
  const std::vector<std::string> outcomes = penstock::FeedExercise::Outcomes();
  return report.Print({outcomes.begin(), outcomes.end()}, options->min_hits);
}
