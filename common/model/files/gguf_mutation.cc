// Feeds seeded broken GGUF files to the parser; see RunMutations.

#include <memory>

#include "common/model/files/testing/gguf_exercise.h"
#include "common/model/files/testing/gguf_mutator.h"
#include "common/model/files/testing/mutation_run.h"

int main(int argc, char** argv) {
  using penstock::GgufMutator;
  return penstock::RunMutations(
      {.format = penstock::ModelFormat::kGguf,
       .make_next =
           [](uint64_t seed) {
             auto mutator = std::make_shared<GgufMutator>(seed);
             return
                 [mutator] { return penstock::ExerciseGguf(mutator->Next()); };
           }},
      argc, argv);
}
