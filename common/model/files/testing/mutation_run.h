#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "common/model/files/model_error.h"

namespace penstock {

// The main function of a mutation driver:
//   DRIVER --seed 1 --inputs 1000000 --min-hits 100
// Feeds inputs to a parser, counts which check stopped each of them, and prints
// the counts. Returns 1 when a check was hit fewer times than asked: a check
// that no input reaches is not tested by the run. A broken promise of the
// parser aborts it.
struct MutationRun {
  ModelFormat format = ModelFormat::kGguf;
  // Checks of the format that this driver does not reach.
  std::set<ModelError> beyond = {};
  // Given the seed, makes the function that tries one input after another and
  // says what stopped it; nothing when it was taken.
  std::function<std::function<std::optional<ModelError>()>(uint64_t seed)>
      make_next = nullptr;
};

int RunMutations(const MutationRun& run, int argc, char** argv);

}  // namespace penstock
