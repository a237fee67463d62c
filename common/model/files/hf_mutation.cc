// Feeds seeded broken Hugging Face folders to their readers; see RunMutations.

#include <memory>
#include <string>
#include <vector>

#include "common/model/files/testing/hf_mutator.h"
#include "common/model/files/testing/mutation_run.h"

namespace penstock {
namespace {

constexpr const char* kSeeds[] = {"deepseek-v3", "gemma3",        "llama3.1",
                                  "mixtral",     "phi3-longrope", "qwen3moe",
                                  "smollm3"};

std::vector<FolderImage> Seeds() {
  std::vector<FolderImage> seeds;
  for (const char* family : kSeeds) {
    seeds.push_back(ReadFolderImage(std::string(PENSTOCK_TEST_DATA) +
                                    "/families/" + family));
  }
  return seeds;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using penstock::HfMutator;
  return penstock::RunMutations(
      {.format = penstock::ModelFormat::kHuggingFace,
       // It takes a header of many megabytes.
       .beyond = {penstock::ModelError::kTensorCount},
       .make_next =
           [](uint64_t seed) {
             auto mutator =
                 std::make_shared<HfMutator>(seed, penstock::Seeds());
             return [mutator] {
               return penstock::ExerciseFolder(mutator->Next());
             };
           }},
      argc, argv);
}
